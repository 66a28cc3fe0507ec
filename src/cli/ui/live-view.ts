import type { Cluster } from "../../api/cluster.ts";
import { PROXY_LABEL, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeNode, KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { nodes, pods } from "../../kube/resources.ts";
import type { Timer } from "../../runtime/clock.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { MemberRow, PodRow, WholeRows } from "./model.ts";
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
  #members: readonly MemberRow[] = [];
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
    this.#timer?.cancel();
    this.#heartbeat.stop();
    await Promise.all([this.#clusters.stop(), this.#nodes.stop(), this.#pods.stop(), this.#whole.stop()]);
  }

  /** Reports whether all pods were listed. */
  get isComplete(): boolean {
    return this.#pods.store.synced && this.#clusters.store.synced;
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
    reader.onMembers(this.#members);
    reader.onWhole(this.#whole.current);
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
    this.#timer ??= this.#options.clock.after(MEMBERS_EVERY_MS, () => {
      this.#timer = undefined;
      this.#publishMembers();
      this.#publishWhole();
      this.#publishProblem();
    });
  }

  #publishMembers(): void {
    if (!this.#clusters.store.synced) return;
    const counted = this.#pods.store.list().flatMap((pod) => pod.counted ?? []);
    this.#members = memberRows(this.#clusters.store.list(), this.#nodes.store.list(), counted);
    for (const reader of this.#readers) reader.onMembers(this.#members);
  }

  #publishWhole(): void {
    if (!this.#isWholeChanged) return;
    this.#isWholeChanged = false;
    const whole = this.#whole.current;
    for (const reader of this.#readers) reader.onWhole(whole);
  }

  #publishProblem(): void {
    const failing = [this.#clusters, this.#nodes, this.#pods].find((reflector) => reflector.failing !== undefined);
    // A failing reflector has no events, so the timer looks again.
    if (failing !== undefined) this.#touchMembers();
    if (failing?.failing?.reason === this.#problem) return;
    this.#problem = failing?.failing?.reason;
    for (const reader of this.#readers) reader.onProblem(this.#problem);
  }
}
