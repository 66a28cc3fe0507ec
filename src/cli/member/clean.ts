import { HOST_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import { NETWORK_POLICY } from "../../copies/network-policies.ts";
import { SERVICES } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { listPages } from "../../kube/list.ts";
import {
  namespaces,
  persistentVolumeClaims,
  priorityClasses,
  type Resource,
  runtimeClasses,
  serviceAccounts,
  serviceExports,
} from "../../kube/resources.ts";
import { Discovery } from "../shared/discovery.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../shared/manifests.ts";
import { objectText, some } from "../shared/output.ts";
import { refOf, remove } from "../shared/removal.ts";
import { waitFor } from "../shared/wait.ts";
import { contentsOf, kindName } from "./contents.ts";
import { findAccess, giveUpAccess } from "./give-up-access.ts";

/** Callbacks that report progress while a member is cleaned. */
export interface CleaningContext {
  readonly signal: AbortSignal;
  readonly removed: (what: string) => void;
  /** Reports a deletion that may take up to a minute. */
  readonly waitsFor: (what: string) => void;
  /** Reports an object that remains, and why. */
  readonly remains: (what: string) => void;
  /** No later attempt follows: unreadable objects remain, and the access is removed all the same. */
  readonly isLast?: boolean;
  /** Rejects if another Cluster took the name. Called repeatedly, since cleaning takes minutes. */
  readonly refuseSuccessor?: () => Promise<void>;
}

/** Returns callbacks that report each as a line about the member. */
export function reportsOf(name: string, report: (line: string) => void): Pick<CleaningContext, "removed" | "waitsFor"> {
  return {
    removed: (what) => report(`${name}: ${what} removed`),
    waitsFor: (what) => report(`${name}: ${what} is being deleted; waiting until it is gone`),
  };
}

/**
 * Removes everything that one host created in a member: its objects, its namespaces without foreign objects, and last its own
 * access. Reports what remains because the credentials do not permit its removal.
 */
export async function cleanMember(client: ClusterClient, hostId: string, context: CleaningContext): Promise<void> {
  const cleaner = new Cleaner(client, hostId, context);
  const access = await findAccess(client, hostId, context.signal);
  await cleaner.sweepObjects();
  await cleaner.sweepNamespaces();
  await context.refuseSuccessor?.();
  await giveUpAccess(client, hostId, access, context);
}

// A new Cluster of the same name gets no pods within this time.
const ASKED_EACH_MS = 1000;
const COPIED = [...Object.values(DEPENDENCIES), ...Object.values(SERVICES), NETWORK_POLICY];
// API groups of the objects that Legation makes in members.
const OWN_GROUPS: ReadonlySet<string> = new Set([
  "",
  serviceExports.group,
  ...COPIED.map(({ resource }) => resource.group),
]);

function mayHold({ group }: Resource<KubeObject>): boolean {
  return OWN_GROUPS.has(group);
}

/** Reports whether an apiVersion belongs to one of these groups. */
function isOwnVersion(apiVersion: string): boolean {
  const [, group = ""] = apiVersion.split("/").reverse();
  return OWN_GROUPS.has(group);
}

// Concurrent deletions of namespaces. Each waits for its delegates' grace periods.
const NAMESPACES_AT_ONCE = 8;
const NAMESPACE_GONE_WITHIN_MS = 60_000;

class Cleaner {
  readonly #client: ClusterClient;
  readonly #hostId: string;
  readonly #context: CleaningContext;
  readonly #signal: AbortSignal;
  readonly #discovery: Discovery;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(client: ClusterClient, hostId: string, context: CleaningContext) {
    const { signal } = context;
    this.#client = client;
    this.#hostId = hostId;
    this.#context = context;
    this.#signal = signal;
    this.#discovery = new Discovery(client, signal);
  }

  async sweepObjects(): Promise<void> {
    const { resources, unknown } = await this.#discovery.removable();
    let failed: KubeError | undefined;
    for (const [apiVersion, error] of unknown) {
      // A vanished resource holds nothing, and a forbidden one counts as a missing right.
      if (!isOwnVersion(apiVersion) || isKubeError(error, "Forbidden", "NotFound")) {
        this.#remains(`objects in ${apiVersion}`, "that API does not answer");
      } else failed ??= error;
    }
    const forbidden: string[] = [];
    for (const resource of [...resources, priorityClasses, runtimeClasses]) {
      try {
        for (const object of await this.#own(resource)) {
          // This client may use the service account, which goes last with the rest of the access.
          if (resource.plural === serviceAccounts.plural && object.metadata.namespace === SYSTEM_NAMESPACE) continue;
          // Claims hold data.
          if (resource.plural === persistentVolumeClaims.plural) {
            this.#keepClaim(object);
            continue;
          }
          await this.#refuseSuccessorSometimes();
          await this.#remove(resource, object);
        }
      } catch (error) {
        if (isKubeError(error, "Forbidden")) forbidden.push(resource.plural);
        else if (isKubeError(error, "BadAnswer", "ServerError", "AnswerLost")) {
          // A failing aggregated API must not keep all other objects in the member.
          if (!mayHold(resource)) this.#remains(`objects in ${kindName(resource)}`, error.detail);
          // A member that does not answer would time out for each kind.
          else if (error.code === "AnswerLost") throw error;
          else failed ??= error;
        } else if (!isKubeError(error, "NotFound", "MethodNotAllowed")) throw error;
      }
    }
    // Fails before the access goes, which the next attempt needs.
    if (failed !== undefined) {
      if (this.#context.isLast !== true) throw failed;
      this.#remains("objects that could not be looked for", failed.message);
    }
    // A host without rights on pods has created none, but its administrator may want to know.
    if (forbidden.includes("pods")) this.#remains("delegate pods", "the credentials may not list pods");
  }

  /** Checks for a successor at most once per interval, since there may be thousands of objects. */
  async #refuseSuccessorSometimes(): Promise<void> {
    if (performance.now() - this.#askedAt < ASKED_EACH_MS) return;
    await this.#context.refuseSuccessor?.();
    this.#askedAt = performance.now();
  }

  #keepClaim({ metadata: { namespace = "", name } }: Stored<KubeObject>): void {
    const remedy = `kubectl --namespace ${namespace} delete persistentvolumeclaim ${name}`;
    this.#remains(`PersistentVolumeClaim ${namespace}/${name}`, `it holds data; when nothing needs it: ${remedy}`);
  }

  async sweepNamespaces(): Promise<void> {
    try {
      const own = await this.#own(namespaces);
      // Each takes seconds to terminate.
      for (let first = 0; first < own.length; first += NAMESPACES_AT_ONCE) {
        await this.#context.refuseSuccessor?.();
        const batch = own.slice(first, first + NAMESPACES_AT_ONCE);
        await Promise.all(batch.map((namespace) => this.#removeNamespace(namespace)));
      }
      const system = await this.#client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal: this.#signal });
      if (system?.metadata.labels?.[MANAGED_BY_LABEL] !== MANAGED_BY) return;
      await this.#context.refuseSuccessor?.();
      await this.#removeNamespace(system);
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      const find = `kubectl get namespaces -l ${HOST_LABEL}=${this.#hostId}`;
      const remedy = `an administrator of the member finds them by \`${find}\`, and removes those that hold nothing else`;
      this.#remains("Namespaces that Legation made there", `${error.detail}; ${remedy}`);
    }
  }

  async #own(resource: Resource<KubeObject>): Promise<Stored<KubeObject>[]> {
    const labelSelector = `${HOST_LABEL}=${this.#hostId}`;
    const items: Stored<KubeObject>[] = [];
    for await (const page of listPages(this.#client, resource, { labelSelector, signal: this.#signal })) {
      // Some aggregated APIs ignore selectors.
      items.push(...page.filter(({ metadata }) => metadata.labels?.[HOST_LABEL] === this.#hostId));
    }
    return items;
  }

  async #removeNamespace(namespace: Stored<KubeObject>): Promise<void> {
    const { name } = namespace.metadata;
    const { foreign, unknown } = await contentsOf(this.#client, this.#discovery, name, this.#hostId, this.#signal);
    if (foreign.length > 0) {
      this.#remains(`Namespace ${name}`, `it holds ${some(foreign)}`);
    } else if (unknown.length > 0) {
      this.#remains(`Namespace ${name}`, `it may hold objects that the credentials cannot see: ${some(unknown)}`);
    } else {
      if ((await this.#delete(namespaces, namespace)) === "kept") return;
      this.#context.waitsFor(`Namespace ${name}`);
      const gone = await waitFor(
        async () => {
          const found = await this.#client.find(namespaces, { name }, { signal: this.#signal });
          return found === undefined ? true : undefined;
        },
        { timeoutMs: NAMESPACE_GONE_WITHIN_MS, signal: this.#signal },
      );
      if (gone === true) this.#context.removed(`Namespace ${name}`);
      else this.#remains(`Namespace ${name}`, "it is being deleted");
    }
  }

  async #remove(resource: Resource<KubeObject>, object: Stored<KubeObject>): Promise<void> {
    if ((await this.#delete(resource, object)) === "deleted")
      this.#context.removed(objectText(resource.kind, object.metadata));
  }

  /** Deletes an object. Reports it as remaining when the right is missing. */
  async #delete(
    resource: Resource<KubeObject>,
    object: Stored<KubeObject>,
  ): Promise<"deleted" | "gone before" | "kept"> {
    const { uid } = object.metadata;
    try {
      const isDeleted = await remove(this.#client, resource, refOf(object.metadata), { uid, signal: this.#signal });
      return isDeleted ? "deleted" : "gone before";
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "MethodNotAllowed")) throw error;
      this.#remains(objectText(resource.kind, object.metadata), error.detail);
      return "kept";
    }
  }

  #remains(what: string, why: string): void {
    this.#context.remains(`${what}: ${why}`);
  }
}
