import type { Cluster } from "../../api/cluster.ts";
import { PROXY_LABEL, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeNode, KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { nodes, pods } from "../../kube/resources.ts";
import type { Timer } from "../../runtime/clock.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { hiddenLine, MEMBERS, ofViewers } from "../shared/hidden.ts";
import { Heartbeat, type Watched } from "./heartbeat.ts";
import type { HiddenFromUser, MemberRow, PodRow, WholeRows } from "./model.ts";
import { memberRows } from "./rows.ts";
import { type ShownPod, StoredPods } from "./stored-pod.ts";
import { type ViewOptions, WholeView } from "./whole-view.ts";

/** A reader of the live view. */
export interface LiveReader {
  /** Called when a pod was changed (with its row) or is gone. */
  onPod(uid: string, row: PodRow | undefined): void;
  /** Called at most once a second. */
  onMembers(members: readonly MemberRow[]): void;
  /** Called at most once a second. */
  onWhole(whole: WholeRows): void;
  /** Called whenever the user may see more, or less. */
  onHidden(hidden: HiddenFromUser): void;
  onProblem(message: string | undefined): void;
}

// A member's sums cost a pass over all pods.
const MEMBERS_EVERY_MS = 1_000;
// Pages of 500, the default, take 3 MB more, since glibc keeps much of the peak.
const LIST_PAGE_SIZE = 100;

/** The host's members and proxies, followed by watches with the user's own rights. */
export class LiveView {
  readonly #options: ViewOptions;
  readonly #readers = new Set<LiveReader>();
  readonly #clusters: Reflector<Cluster>;
  readonly #nodes: Reflector<KubeNode>;
  readonly #pods: Reflector<ShownPod>;
  readonly #whole: WholeView;
  readonly #heartbeat: Heartbeat;
  #isWholeChanged = false;
  #members: readonly MemberRow[] | undefined;
  #hidden: HiddenFromUser = { members: false };
  #isStopped = false;
  #problem: string | undefined;
  #timer: Timer | undefined;

  constructor(options: ViewOptions) {
    this.#options = options;
    const { namespace } = options;
    this.#clusters = this.#follow({ resource: clusters });
    this.#nodes = this.#follow({ resource: nodes, labelSelector: VIRTUAL_NODE_LABEL });
    const storedPods = new StoredPods();
    this.#pods = this.#follow<ShownPod>({
      resource: pods,
      labelSelector: PROXY_LABEL,
      ...(namespace === undefined ? {} : { namespace }),
      transform: (pod) => storedPods.stored(pod),
      onEvent: ({ type, object }) => {
        const row = type === "deleted" ? undefined : object.row;
        for (const reader of this.#readers) reader.onPod(object.metadata.uid, row);
        this.#touchMembers();
      },
    });
    const { host, clock } = options;
    this.#heartbeat = new Heartbeat({ host, clock, watched: [this.#clusters, this.#nodes, this.#pods] });
    this.#whole = new WholeView(options, () => {
      this.#isWholeChanged = true;
      this.#touchMembers();
    });
  }

  start(): void {
    for (const reflector of [this.#clusters, this.#nodes, this.#pods, this.#whole]) reflector.start();
    this.#heartbeat.start();
    this.#touchMembers();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#heartbeat.stop();
    await Promise.all([this.#clusters.stop(), this.#nodes.stop(), this.#pods.stop(), this.#whole.stop()]);
  }

  /** Reports whether all was listed that the user may see of pods and members. */
  get isComplete(): boolean {
    return this.#pods.store.synced && (this.#clusters.store.synced || isHidden(this.#clusters));
  }

  /** Milliseconds since the host's API server was last heard. Undefined: never heard. */
  get silentMs(): number | undefined {
    return this.#heartbeat.silentMs;
  }

  /** Returns the rows of all pods, oldest first. */
  rows(): PodRow[] {
    return this.#pods.store.list().flatMap(({ row }) => row ?? []);
  }

  subscribe(reader: LiveReader): () => void {
    this.#readers.add(reader);
    reader.onProblem(this.#problem);
    if (this.#members !== undefined) reader.onMembers(this.#members);
    reader.onWhole(this.#whole.current);
    reader.onHidden(this.#hidden);
    return () => this.#readers.delete(reader);
  }

  #follow<T extends KubeObject>(
    options: Pick<ReflectorOptions<T>, "resource" | "labelSelector" | "namespace" | "transform" | "onEvent">,
  ): Reflector<T> {
    const { host: client, clock } = this.#options;
    const onEvent = (): void => this.#touchMembers();
    return new Reflector({ client, clock, log: SILENT_LOG, pageSize: LIST_PAGE_SIZE, onEvent, ...options });
  }

  #touchMembers(): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#options.clock.after(MEMBERS_EVERY_MS, () => {
      this.#timer = undefined;
      this.#publishMembers();
      this.#publishWhole();
      this.#publishHidden();
      this.#publishProblem();
    });
  }

  #publishMembers(): void {
    if (!this.#clusters.store.synced) return;
    const counted = this.#pods.store.list().flatMap((pod) => pod.counted ?? []);
    this.#members = memberRows(this.#clusters.store.list(), this.#nodes.store.list(), counted);
    for (const reader of this.#readers) reader.onMembers(this.#members);
  }

  #publishHidden(): void {
    const members = isHidden(this.#clusters);
    const ofMembers = members ? [MEMBERS] : isHidden(this.#nodes) ? [ofViewers("virtual nodes")] : [];
    const { isConfined, namespace } = this.#options;
    const ofOthers = isConfined === true ? [ofViewers(`pods outside namespace ${namespace}`)] : [];
    const line = hiddenLine([...ofOthers, ...ofMembers, ...this.#whole.hidden]);
    if (line === this.#hidden.line) return;
    this.#hidden = { line, members };
    for (const reader of this.#readers) reader.onHidden(this.#hidden);
  }

  #publishWhole(): void {
    if (!this.#isWholeChanged) return;
    this.#isWholeChanged = false;
    const whole = this.#whole.current;
    for (const reader of this.#readers) reader.onWhole(whole);
  }

  #publishProblem(): void {
    const failing = [this.#clusters, this.#nodes, this.#pods].filter((reflector) => reflector.failing !== undefined);
    // A failing reflector has no events, so the timer looks again.
    if (failing.length > 0) this.#touchMembers();
    const problem = failing.find((reflector) => reflector === this.#pods || !isHidden(reflector))?.failing?.reason;
    if (problem === this.#problem) return;
    this.#problem = problem;
    for (const reader of this.#readers) reader.onProblem(problem);
  }
}

type Readable = Pick<Watched, "failing"> & { readonly store: Pick<ReadStore<never>, "synced"> };

/** Reports whether the user may not list a resource, and never could. */
function isHidden({ store, failing }: Readable): boolean {
  return !store.synced && failing?.code === "Forbidden";
}
