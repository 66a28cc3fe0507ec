import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { kindName, type Resource } from "../../../src/kube/resources.ts";

/** A resource as the API server's answers name it. */
export type ServedResource = Pick<Resource<AnyObject>, "group" | "version" | "plural" | "kind" | "namespaced">;

/** A cause in the details of a Status, as it is on the wire: the type of a cause is its field `reason`. */
export interface WireCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

/** A request that the API server refuses. */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly WireCause[];

  constructor(status: number, reason: string, message: string, causes: readonly WireCause[] = []) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
  }

  /** Returns the Status object of the answer. */
  toStatus(): object {
    const { status: code, reason, message, causes } = this;
    const details = causes.length === 0 ? {} : { details: { causes } };
    return { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, ...details, code };
  }
}

export function notFound(resource: ServedResource, name: string): Refusal {
  return new Refusal(404, "NotFound", `${kindName(resource)} "${name}" not found`);
}

interface Asked {
  readonly verb: string;
  readonly resource: string;
  readonly namespace?: string | undefined;
}

/** Returns the refusal of a request that the account has no right to. */
export function forbidden({ verb, resource, namespace }: Asked): Refusal {
  const where = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const message = `${resource} is forbidden: User "ann" cannot ${verb} resource "${resource}" in API group "" ${where}`;
  return new Refusal(403, "Forbidden", message);
}

/** Returns the refusal of a path that the server does not serve. */
export function notServed(): Refusal {
  return new Refusal(404, "NotFound", "the server could not find the requested resource");
}

export function alreadyExists(resource: ServedResource, name: string): Refusal {
  return new Refusal(409, "AlreadyExists", `${kindName(resource)} "${name}" already exists`);
}

export function conflict(resource: ServedResource, name: string, why: string): Refusal {
  const subject = `Operation cannot be fulfilled on ${kindName(resource)} "${name}"`;
  return new Refusal(409, "Conflict", `${subject}: ${why}`);
}

export function uidMismatch(resource: ServedResource, name: string, wanted: string, actual: string): Refusal {
  return conflict(resource, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${actual}`);
}

/** Returns the refusal of an apply to fields that other managers own. */
export function applyConflict(
  conflicts: readonly { readonly manager: string; readonly field: string }[],
  apiVersion = "v1",
): Refusal {
  const causes = conflicts.map(({ manager, field }) => {
    return { reason: "FieldManagerConflict", message: `conflict with "${manager}" using ${apiVersion}`, field };
  });
  const count = `${causes.length} conflict${causes.length === 1 ? "" : "s"}`;
  const all = causes.map(({ message, field }) => `${message}: ${field}`).join(", ");
  return new Refusal(409, "Conflict", `Apply failed with ${count}: ${all}`, causes);
}

export function invalid({ kind, group }: ServedResource, name: string, why: string): Refusal {
  return new Refusal(422, "Invalid", `${group === "" ? kind : `${kind}.${group}`} "${name}" is invalid: ${why}`);
}

export function badRequest(why: string): Refusal {
  return new Refusal(400, "BadRequest", why);
}

export function internalError(why: string): Refusal {
  return new Refusal(500, "InternalError", `Internal error occurred: ${why}`);
}

export function expired(why: string): Refusal {
  return new Refusal(410, "Expired", why);
}
