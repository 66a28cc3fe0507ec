import { defined } from "../../../api/defined.ts";
import { type ObjectKey, objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import { deletionAskedAt, isBound, isTerminal } from "../../../pods/pod-state.ts";
import { memberOf } from "../../../pods/proxy.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import type { WaitingProxies } from "../../../scheduling/retries/waiting-proxies.ts";
import type { FinishedStep, SpanAttributes, Step, TracedPod, Traces } from "../../../telemetry/traces.ts";
import type { Action } from "../decision/decision.ts";
import { awaitsDelegate } from "../decision/delegates.ts";
import type { Context, Result } from "../options.ts";

export interface PodTracesOptions {
  readonly traces: Traces;
  readonly host: string;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly memories: Pick<Memories, "of">;
  readonly waiting: Pick<WaitingProxies, "since">;
  readonly clock: Pick<Clock, "now">;
}

interface About {
  readonly member?: string;
  readonly phase?: string;
}

type Ended = Pick<FinishedStep, "name" | "root"> &
  Partial<Record<"startedAt" | "endedAt", number | undefined>> & { readonly failure?: string | undefined };

const SCHEDULE = "schedule delegate";

/** Names of the actions that are requests; the others change memory only. */
const NAMES: Readonly<Partial<Record<Action["type"], string>>> = {
  create: "create delegate",
  delete: "delete delegate",
  sweep: "sweep delegate",
  confirmCreated: "look for delegate",
  readPreviousDelegate: "look for delegate",
  bind: "bind proxy",
  addFinalizer: "add finalizer",
  recordDelegate: "record delegate",
  forward: "forward change",
  status: "copy status",
  report: "tell why it waits",
  announce: "tell where it went",
  deleteProxy: "finish proxy",
  removeFinalizer: "release proxy",
};

/** Records one trace per pod: the controller's actions, and the waits between them. */
export class PodTraces {
  readonly #options: PodTracesOptions;

  constructor(options: PodTracesOptions) {
    this.#options = options;
  }

  async follow(action: Action, { key }: Context, run: () => Result): Result {
    const { traces, proxies, memories, clock } = this.#options;
    const proxy = proxies.get(key);
    const uid = "proxyUid" in action ? action.proxyUid : proxy?.metadata.uid;
    if (uid === undefined) return run();
    const { namespace = "", name } = objectRef(key);
    const pod: TracedPod = { uid, namespace, name };
    const memory = memories.of(uid);
    const attempt = "member" in action ? memory.attempts[action.member] : undefined;
    if (action.type === "create" && Object.keys(memory.attempts).length === 0) this.#waited(pod, key, proxy);
    if (action.type === "noteRefusal") {
      const { cluster, reason } = action.refusal;
      const startedAt = memory.attempts[cluster]?.since;
      this.#finished(pod, { name: SCHEDULE, startedAt, failure: reason }, { member: cluster });
    }
    const stepName = NAMES[action.type];
    if (stepName === undefined) return run();
    const startedAt = clock.now();
    const step: Step = { name: stepName, startedAt, attributes: this.#attributes(action) };
    const expectation = await traces.step(pod, step, run);
    if (proxy?.metadata.uid !== uid) return expectation;
    if (action.type === "bind" && action.delegateUid !== undefined) {
      this.#finished(pod, { name: SCHEDULE, startedAt: attempt?.since, endedAt: startedAt }, action);
      this.#placed(pod, proxy, action.member);
    }
    if (action.type === "recordDelegate" && awaitsDelegate(proxy)) this.#placed(pod, proxy, memberOf(proxy));
    if (action.type === "status" && expectation !== undefined) this.#ended(pod, proxy, action.patch.status.phase);
    if (action.type === "removeFinalizer") this.#gone(pod, proxy);
    return expectation;
  }

  #waited(pod: TracedPod, key: ObjectKey, proxy: Stored<Pod> | undefined): void {
    const { memories, waiting } = this.#options;
    const since = memories.of(pod.uid).fresh ? waiting.since(key) : timeOf(proxy?.metadata.creationTimestamp);
    this.#finished(pod, { name: "wait for placement", startedAt: since });
  }

  /** Records the root span, from creation to Binding, as soon as it is known. */
  #placed(pod: TracedPod, proxy: Stored<Pod>, member?: string, failure?: string): void {
    const startedAt = timeOf(proxy.metadata.creationTimestamp) ?? this.#options.clock.now();
    this.#finished(pod, { name: "place pod", root: true, startedAt, failure }, defined({ member }));
  }

  #ended(pod: TracedPod, proxy: Stored<Pod>, phase: unknown): void {
    if (isTerminal(proxy) || (phase !== "Succeeded" && phase !== "Failed")) return;
    const failure = phase === "Failed" ? phase : undefined;
    this.#finished(pod, { name: "run", startedAt: timeOf(proxy.status?.startTime), failure }, { phase });
  }

  #gone(pod: TracedPod, proxy: Stored<Pod>): void {
    if (!isBound(proxy)) this.#placed(pod, proxy, undefined, "DeletedBeforePlacement");
    this.#finished(pod, { name: "delete pod", startedAt: deletionAskedAt(proxy) });
  }

  /** Records a step that ends now unless it says when. One whose start is not known is left out. */
  #finished(
    pod: TracedPod,
    { startedAt, endedAt = this.#options.clock.now(), failure, ...step }: Ended,
    about?: About,
  ): void {
    if (startedAt === undefined) return;
    const attributes = this.#attributes(about);
    this.#options.traces.finishedStep(pod, { ...step, startedAt, endedAt, attributes, ...defined({ failure }) });
  }

  #attributes(about: Action | About = {}): SpanAttributes {
    const phase =
      "patch" in about && "status" in about.patch ? about.patch.status.phase : "phase" in about && about.phase;
    return {
      "k8s.cluster.name": this.#options.host,
      ...("member" in about && about.member !== undefined ? { "legation.member": about.member } : {}),
      ...(typeof phase === "string" ? { "k8s.pod.status.phase": phase } : {}),
    };
  }
}

function timeOf(text: unknown): number | undefined {
  const at = Date.parse(String(text ?? ""));
  return Number.isNaN(at) ? undefined : at;
}
