import { defined } from "../../../api/defined.ts";
import { type ObjectKey, objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import { deletionAskedAt, isBound, isTerminal } from "../../../pods/pod-state.ts";
import { memberOf } from "../../../pods/proxy.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../../runtime/controller.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import type { WaitingProxies } from "../../../scheduling/retries/waiting-proxies.ts";
import type { SpanAttributes, Step, TracedPod, Traces } from "../../../telemetry/traces.ts";
import type { Action } from "../decision/decision.ts";
import { awaitsDelegate } from "../decision/delegates.ts";
import type { View } from "../decision/view.ts";

export interface PodTracesOptions {
  readonly traces: Traces;
  readonly host: string;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly memories: Pick<Memories, "of">;
  readonly waiting: Pick<WaitingProxies, "since">;
  readonly clock: Pick<Clock, "now">;
}

type Result = Promise<Expectation<View> | undefined>;

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

  async follow(action: Action, { key }: ActionContext<ObjectKey>, run: () => Result): Result {
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
      this.#scheduled(pod, cluster, memory.attempts[cluster]?.since, reason);
    }
    const stepName = NAMES[action.type];
    if (stepName === undefined) return run();
    const startedAt = clock.now();
    const step: Step = { name: stepName, startedAt, attributes: this.#attributes(action) };
    const expectation = await traces.step(pod, step, run);
    if (proxy?.metadata.uid !== uid) return expectation;
    if (action.type === "bind" && action.delegateUid !== undefined) {
      this.#scheduled(pod, action.member, attempt?.since, undefined, startedAt);
      this.#placed(pod, proxy, action.member);
    }
    if (action.type === "recordDelegate" && awaitsDelegate(proxy)) this.#placed(pod, proxy, memberOf(proxy));
    if (action.type === "status" && expectation !== undefined) this.#ended(pod, proxy, action.patch.status.phase);
    if (action.type === "removeFinalizer") this.#gone(pod, proxy);
    return expectation;
  }

  #waited(pod: TracedPod, key: ObjectKey, proxy: Stored<Pod> | undefined): void {
    const { traces, memories, waiting, clock } = this.#options;
    const since = memories.of(pod.uid).fresh ? waiting.since(key) : createdAt(proxy);
    if (since === undefined) return;
    traces.finishedStep(pod, {
      name: "wait for placement",
      startedAt: since,
      endedAt: clock.now(),
      attributes: this.#attributes(),
    });
  }

  #scheduled(
    pod: TracedPod,
    member: string,
    since: number | undefined,
    failure: string | undefined,
    until: number = this.#options.clock.now(),
  ): void {
    if (since === undefined) return;
    this.#options.traces.finishedStep(pod, {
      name: "schedule delegate",
      startedAt: since,
      endedAt: until,
      attributes: this.#attributes({ member }),
      ...defined({ failure }),
    });
  }

  /** Records the root span, from creation to Binding, as soon as it is known. */
  #placed(pod: TracedPod, proxy: Stored<Pod>, member?: string, failure?: string): void {
    const { traces, clock } = this.#options;
    traces.finishedStep(pod, {
      name: "place pod",
      root: true,
      startedAt: createdAt(proxy) ?? clock.now(),
      endedAt: clock.now(),
      attributes: this.#attributes(member === undefined ? {} : { member }),
      ...defined({ failure }),
    });
  }

  #ended(pod: TracedPod, proxy: Stored<Pod>, phase: unknown): void {
    if (isTerminal(proxy) || (phase !== "Succeeded" && phase !== "Failed")) return;
    const { traces, clock } = this.#options;
    const startedAt = Date.parse(String(proxy.status?.startTime ?? ""));
    if (Number.isNaN(startedAt)) return;
    traces.finishedStep(pod, {
      name: "run",
      startedAt,
      endedAt: clock.now(),
      attributes: this.#attributes({ phase }),
      ...(phase === "Failed" ? { failure: "Failed" } : {}),
    });
  }

  #gone(pod: TracedPod, proxy: Stored<Pod>): void {
    const { traces, clock } = this.#options;
    if (!isBound(proxy)) this.#placed(pod, proxy, undefined, "DeletedBeforePlacement");
    const startedAt = deletionAskedAt(proxy);
    if (startedAt === undefined) return;
    traces.finishedStep(pod, { name: "delete pod", startedAt, endedAt: clock.now(), attributes: this.#attributes() });
  }

  #attributes(about: Action | { readonly member?: string; readonly phase?: string } = {}): SpanAttributes {
    const phase =
      "patch" in about && "status" in about.patch ? about.patch.status.phase : "phase" in about && about.phase;
    return {
      "k8s.cluster.name": this.#options.host,
      ...("member" in about && about.member !== undefined ? { "legation.member": about.member } : {}),
      ...(typeof phase === "string" ? { "k8s.pod.status.phase": phase } : {}),
    };
  }
}

function createdAt(proxy: Stored<Pod> | undefined): number | undefined {
  const at = Date.parse(proxy?.metadata.creationTimestamp ?? "");
  return Number.isNaN(at) ? undefined : at;
}
