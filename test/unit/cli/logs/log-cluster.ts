import { Readable } from "node:stream";
import type { Job, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient, StreamOptions } from "../../../../src/kube/client.ts";
import { jobs, pods } from "../../../../src/kube/resources.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { containerStatus, pod } from "../../../support/builders/pod.ts";

const SHOP = { name: "sweep", namespace: "shop" } as const;

/** The host's Job, and its copy in a member. */
export function job(
  parts: { member?: string; finished?: boolean; uid?: string; whole?: boolean } & Partial<Job["spec"]> = {},
): Stored<Job> {
  const { member, finished = false, uid = "host-uid", whole = true, ...spec } = parts;
  return {
    metadata: {
      ...SHOP,
      uid,
      resourceVersion: "1",
      labels: whole ? { "legation.dev/whole": "true" } : {},
      annotations: member === undefined ? {} : { "legation.dev/cluster": member },
    },
    spec: { template: {}, selector: { matchLabels: { "batch.kubernetes.io/controller-uid": uid } }, ...spec },
    status: finished ? { conditions: [{ type: "Complete", status: "True" }] } : {},
  };
}

export function copyOf({ metadata: { uid } }: Stored<Job>): Stored<Job> {
  const copy = job({ uid: "copy-uid" });
  const owner = { cluster: "host", ...SHOP, uid };
  return { ...copy, metadata: { ...copy.metadata, annotations: { "legation.dev/owner": JSON.stringify(owner) } } };
}

type State = "waiting" | "running" | "ended";

/** A pod of the copy. */
export function runPod(name: string, state: State, version = "1"): Stored<Pod> {
  const states = {
    waiting: { waiting: { reason: "ContainerCreating" } },
    running: { running: {} },
    ended: { terminated: { exitCode: 0 } },
  };
  const phases = { waiting: "Pending", running: "Running", ended: "Succeeded" };
  return pod({
    name,
    uid: `uid-${name}`,
    metadata: {
      namespace: SHOP.namespace,
      labels: { app: "web", "batch.kubernetes.io/controller-uid": "copy-uid" },
      resourceVersion: version,
      creationTimestamp: `2026-01-01T00:00:0${name.at(-1)}Z`,
    },
    spec: { restartPolicy: "Never" },
    status: { phase: phases[state], containerStatuses: [containerStatus({ state: states[state] })] },
  });
}

/** A stream that was asked for. */
export interface Asked {
  readonly pod: string;
  readonly query: Readonly<Record<string, string>>;
  readonly options: StreamOptions;
}

/** A cluster with one Job or proxy, and pods, whose logs the test writes. */
export class LogCluster extends MemoryCluster {
  override readonly client: ClusterClient;
  readonly asked: Asked[] = [];
  /** How often pods were listed. */
  podLists = 0;
  /** Answers the next stream of a pod. */
  onStream: (asked: Asked) => Readable | { readonly status: number; readonly text: string } | Error = () =>
    Readable.from([]);
  /** Makes requests fail while it is set. */
  failure: Error | undefined;

  constructor(name: string, found?: Stored<Job> | Stored<Pod>, ofMember: readonly Stored<Pod>[] = []) {
    super(name, name);
    for (const each of found === undefined ? ofMember : [found, ...ofMember]) this.change(each);
    const pause = async (): Promise<void> => {
      if (this.failure !== undefined) throw this.failure;
    };
    const client = clientOf(this, { way: { pause } });
    this.client = {
      ...client,
      list: (resource, options) => {
        if (resource.plural === pods.plural) this.podLists += 1;
        return client.list(resource, options);
      },
      stream: async (_resource, { name: pod }, _subresource, options) => {
        const asked = { pod, query: Object.fromEntries(options.query), options };
        this.asked.push(asked);
        const answer = this.onStream(asked);
        if (answer instanceof Error) throw answer;
        if (!(answer instanceof Readable)) return { ...answer, headers: {} };
        options.signal?.addEventListener("abort", () => answer.destroy(new Error("aborted")));
        return { body: answer, headers: {} };
      },
    };
  }

  /** Creates or changes the Job or a pod. */
  change(object: Stored<Job> | Stored<Pod>): void {
    this.put("template" in { ...object.spec } ? jobs : pods, object);
  }

  deleteJob(): void {
    this.drop(jobs, SHOP);
  }
}
