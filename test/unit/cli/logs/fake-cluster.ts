import { Readable } from "node:stream";
import type { Job, KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient, StreamOptions, WatchEvent } from "../../../../src/kube/client.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { containerStatus, pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

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

type Change = WatchEvent<KubeObject>;

/** A cluster with one Job and its pods, whose logs the test writes. */
export class FakeCluster {
  readonly client: ClusterClient;
  readonly asked: Asked[] = [];
  /** How often pods were listed. */
  podLists = 0;
  /** Answers the next stream of a pod. */
  onStream: (asked: Asked) => Readable | { readonly status: number; readonly text: string } | Error = () =>
    Readable.from([]);
  /** Makes requests fail while it is set. */
  failure: Error | undefined;
  /** The host's Job, or the proxy of a pod that `find` is asked for. */
  #found: Stored<Job> | Stored<Pod> | undefined;
  readonly #pods = new Map<string, Stored<Pod>>();
  readonly #watches = new Set<{ readonly plural: string; readonly push: (change: Change | undefined) => void }>();
  #version = 1;

  constructor(cluster: string, found?: Stored<Job> | Stored<Pod>, pods: readonly Stored<Pod>[] = []) {
    this.#found = found;
    for (const each of pods) this.#pods.set(each.metadata.name, each);
    this.client = fakeClient({
      cluster,
      find: async () => (this.failure === undefined ? this.#found : this.#fail()),
      list: async ({ plural }) => {
        if (this.failure !== undefined) this.#fail();
        if (plural === "pods") this.podLists += 1;
        const items = plural === "jobs" ? [this.#found].filter((each) => each !== undefined) : [...this.#pods.values()];
        return { items, resourceVersion: String(this.#version), size: 1 };
      },
      watch: ({ plural }, { signal, onOpen }) => this.#watch(plural, signal, onOpen),
      stream: async (_resource, { name }, _subresource, options) => {
        const asked = { pod: name, query: Object.fromEntries(options.query), options };
        this.asked.push(asked);
        const answer = this.onStream(asked);
        if (answer instanceof Error) throw answer;
        if (!(answer instanceof Readable)) return { ...answer, headers: {} };
        options.signal?.addEventListener("abort", () => answer.destroy(new Error("aborted")));
        return { body: answer, headers: {} };
      },
    });
  }

  /** Changes the Job or a pod, as a watch tells it. */
  change(object: Stored<Job> | Stored<Pod>): void {
    this.#version += 1;
    const { name } = object.metadata;
    const changed = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    const isPod = "status" in object && object.status !== undefined && "phase" in object.status;
    if (isPod) this.#pods.set(name, changed as Stored<Pod>);
    else this.#found = changed;
    this.#tell(isPod ? "pods" : "jobs", { type: "MODIFIED", object: changed, size: 1 });
  }

  deleteJob(): void {
    const object = this.#found;
    this.#found = undefined;
    if (object !== undefined) this.#tell("jobs", { type: "DELETED", object, size: 1 });
  }

  /** Ends all watches, as an API server does now and then. */
  endWatches(): void {
    for (const { push } of this.#watches) push(undefined);
  }

  #tell(plural: string, change: Change): void {
    for (const watch of this.#watches) if (watch.plural === plural) watch.push(change);
  }

  #fail(): never {
    throw this.failure ?? kubeError("NotSent");
  }

  async *#watch(plural: string, signal: AbortSignal, onOpen: (() => void) | undefined): AsyncGenerator<Change> {
    if (this.failure !== undefined) this.#fail();
    const changes: (Change | undefined)[] = [];
    let wake = (): void => undefined;
    const watch = {
      plural,
      push: (change: Change | undefined) => {
        changes.push(change);
        wake();
      },
    };
    this.#watches.add(watch);
    signal.addEventListener("abort", () => watch.push(undefined));
    onOpen?.();
    try {
      for (;;) {
        if (changes.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const change = changes.shift();
        if (change === undefined) return;
        yield change;
      }
    } finally {
      this.#watches.delete(watch);
    }
  }
}
