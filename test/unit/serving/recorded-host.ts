import { z } from "zod";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { clientOf } from "../../support/api-server/client.ts";
import { MemoryCluster } from "../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

const entries = z.array(
  z.looseObject({ name: z.string(), clientConfig: z.looseObject({ caBundle: z.string().optional() }) }),
);
const configuration = z.looseObject({ webhooks: entries });

/** A host that records the writes of its client, and may refuse all requests. */
export class RecordedHost extends MemoryCluster {
  override readonly client: ClusterClient;
  /** Every write, as `verb plural/name`. */
  readonly writes: string[] = [];
  /** Called before each write; may change the store, as another replica would. */
  beforeWrite: () => void = () => {};
  /** When set, every call is refused with it. */
  failure: KubeErrorCode | undefined;

  constructor() {
    super("host", "host-1");
    const check = (verb: string): void => {
      if (this.failure !== undefined) throw kubeError(this.failure, this.failure, { cluster: "host", verb });
    };
    const { create, replace, patch, ...client } = clientOf(this, { way: { pause: async () => check("any") } });
    const write = (verb: string, { plural }: Resource<KubeObject>, name = ""): void => {
      check(verb);
      this.beforeWrite();
      this.writes.push(`${verb} ${plural}/${name}`);
    };
    this.client = {
      ...client,
      create: async (resource, object, options) => {
        write("create", resource, object.metadata?.name);
        return create(resource, object, options);
      },
      replace: async (resource, object, options) => {
        write("update", resource, object.metadata?.name);
        return replace(resource, object, options);
      },
      patch: async (resource, ref, body, options) => {
        write("patch", resource, ref.name);
        return patch(resource, ref, body, options);
      },
    };
  }
}

/** The caBundles of a webhook configuration, in the order of its entries. */
export function bundlesOf(object: unknown): (string | undefined)[] {
  return configuration
    .parse(object)
    .webhooks.map(({ clientConfig: { caBundle } }) =>
      caBundle === undefined ? undefined : Buffer.from(caBundle, "base64").toString(),
    );
}
