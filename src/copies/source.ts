import type { KubeObject, Stored } from "../api/kubernetes.ts";

/** An object of the host as a member is given it. */
export type Source<T extends KubeObject> =
  | { readonly state: "present"; readonly object: Stored<T> }
  /** The namespace was read without it, or the member is not given the object. */
  | { readonly state: "missing" }
  /** The namespace was not read yet, or cannot be: `message` says why. */
  | { readonly state: "unknown"; readonly message?: string };
