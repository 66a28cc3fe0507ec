import { isDeepStrictEqual } from "node:util";
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
import type { LiveMessage, PodRow } from "./model.ts";
import { memberRows } from "./rows.ts";
import { type ShownPod, StoredPods } from "./stored-pod.ts";
import { type ViewOptions, WholeView } from "./whole-view.ts";

/** A reader of the live view. */
export interface LiveReader {
  /** Called when a pod was changed (with its row) or is gone. */
  onPod(uid: string, row: PodRow | undefined): void;
  /** Called with members, whole objects, what the user may not see, or a problem, at most once a second for each. */
  onNews(message: LiveMessage): void;
}

// A member's sums cost a pass over all pods.
const MEMBERS_EVERY_MS = 1_000;
// Pause between two passes, in multiples of the duration of one.
const REST_PER_WORK = 10;
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
  /** The latest message of each type. */
  readonly #news = new Map<LiveMessage["type"], LiveMessage>([
    ["problem", { type: "problem", message: undefined }],
    ["whole", { type: "whole", rows: [], notRead: [] }],
    ["hidden", { type: "hidden", line: undefined, members: false }],
  ]);
  #isWholeChanged = false;
  #isStopped = false;
  #timer: Timer | undefined;
  /** How long the last publication took. */
  #publishMs = 0;

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
    for (const message of this.#news.values()) reader.onNews(message);
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
    const afterMs = Math.max(MEMBERS_EVERY_MS, this.#publishMs * REST_PER_WORK);
    this.#timer ??= this.#options.clock.after(afterMs, () => {
      this.#timer = undefined;
      const begunAt = performance.now();
      this.#publish();
      this.#publishMs = performance.now() - begunAt;
    });
  }

  #publish(): void {
    const [ofClusters, ofNodes] = [this.#clusters.store, this.#nodes.store];
    if (ofClusters.synced) {
      const counted = this.#pods.store.list().flatMap((pod) => pod.counted ?? []);
      this.#tell({ type: "members", members: memberRows(ofClusters.list(), ofNodes.list(), counted) });
    }
    if (this.#isWholeChanged) this.#tell({ type: "whole", ...this.#whole.current });
    this.#isWholeChanged = false;
    this.#tell({ type: "hidden", line: this.#hiddenLine, members: isHidden(this.#clusters) });
    const failing = [this.#clusters, this.#nodes, this.#pods].filter((reflector) => reflector.failing !== undefined);
    // A failing reflector has no events, so the timer looks again.
    if (failing.length > 0) this.#touchMembers();
    const problem = failing.find((reflector) => reflector === this.#pods || !isHidden(reflector))?.failing?.reason;
    this.#tell({ type: "problem", message: problem });
  }

  get #hiddenLine(): string | undefined {
    const { isConfined, namespace } = this.#options;
    return hiddenLine([
      ...(isConfined === true ? [ofViewers(`pods outside namespace ${namespace}`)] : []),
      ...(isHidden(this.#clusters) ? [MEMBERS] : isHidden(this.#nodes) ? [ofViewers("virtual nodes")] : []),
      ...this.#whole.hidden,
    ]);
  }

  /** Tells all readers what they were not told last. */
  #tell(message: LiveMessage): void {
    if (isDeepStrictEqual(this.#news.get(message.type), message)) return;
    this.#news.set(message.type, message);
    for (const reader of this.#readers) reader.onNews(message);
  }
}

type Readable = Pick<Watched, "failing"> & { readonly store: Pick<ReadStore<never>, "synced"> };

/** Reports whether the user may not list a resource, and never could. */
function isHidden({ store, failing }: Readable): boolean {
  return !store.synced && failing?.code === "Forbidden";
}
