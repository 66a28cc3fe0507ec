import { HOST_LABEL, OWNER_ANNOTATION } from "../api/keys.ts";
import { isKubeError } from "../kube/errors.ts";
import { namespaces } from "../kube/resources.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import type { Member } from "./member.ts";
import { SharedCreation } from "./shared-creation.ts";

/** Makes the namespaces that members lack when something is first created there. */
export class MemberNamespaces {
  readonly #identity: HostIdentity;
  readonly #creations = new SharedCreation();

  constructor(identity: HostIdentity) {
    this.#identity = identity;
  }

  /** Does `create`; when its namespace turns out to be missing, makes that first, unless the Cluster forbids it. */
  async createIn<T>(member: Member, namespace: string, signal: AbortSignal, create: () => Promise<T>): Promise<T> {
    const shared = `${member.name}/${namespace}`;
    const seen = this.#creations.count;
    try {
      return await create();
    } catch (error) {
      if (!isKubeError(error, "NotFound") || member.cluster.spec.createNamespaces === false) throw error;
      await this.#creations.make(shared, seen, () => this.#create(member, namespace, signal));
      return await create();
    }
  }

  async #create(member: Member, name: string, signal: AbortSignal): Promise<void> {
    const { id, name: cluster } = this.#identity;
    const owner = JSON.stringify({ cluster, namespace: "", name, uid: "" });
    const metadata = { name, labels: { [HOST_LABEL]: id }, annotations: { [OWNER_ANNOTATION]: owner } };
    try {
      await member.client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata }, { signal });
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists")) throw error;
    }
  }
}
