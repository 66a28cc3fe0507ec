import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { KubeNode, Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { heapBytesOfObject } from "../kube/json.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { nodes } from "../kube/resources.ts";
import type { Candidate } from "../placement/candidate.ts";
import { type NodeKinds, nodeKindsOf } from "../placement/node-kinds.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { Reflector, type ReflectorEvent } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { NodeFits } from "./node-fits.ts";
import { type NodeTotals, nodeFingerprint, totalsOf } from "./node-totals.ts";

export interface MemberNodesOptions {
  readonly client: ClusterClient;
  readonly budget: ByteBudget;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the nodes changed in a way that matters to placement. */
  readonly onChange: () => void;
  readonly onState: () => void;
}

// Grouping thousands of nodes takes a second of processor time, and some of them change all the time.
const KINDS_EVERY_MS = 30_000;
// Summing thousands of nodes takes tens of milliseconds, and some of them change all the time.
const CHANGES_EVERY_MS = 1_000;

// Unique among all members, including successive ones of the same name: a refusal of one proves nothing for the next.
let latestVersion = 0;

function nextVersion(): number {
  latestVersion += 1;
  return latestVersion;
}

export class MemberNodes {
  readonly reflector: Reflector<KubeNode>;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #fits: NodeFits = new NodeFits(() => this.reflector.store.list());
  /** Pods name few keys. */
  readonly #labelled = new Map<string, boolean>();
  #totals: NodeTotals | undefined;
  #kinds: { readonly version: number; readonly at: number; readonly value: NodeKinds | undefined } | undefined;
  #version = nextVersion();
  #emittedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ client, budget, clock, log, onChange, onState }: MemberNodesOptions) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.reflector = new Reflector({
      client,
      resource: nodes,
      // A member that is itself a host has virtual nodes, which do not count.
      labelSelector: `!${VIRTUAL_NODE_LABEL}`,
      budget,
      clock,
      log,
      transform: withoutImages,
      sizeOf: heapBytesOfObject,
      onEvent: (event) => this.#onNode(event),
      onState,
    });
  }

  stop(): Promise<void> {
    this.#timer?.cancel();
    return this.reflector.stop();
  }

  get read(): boolean {
    return this.reflector.store.synced;
  }

  /** Changes with each change that matters to placement. Never equal to another member's. */
  get version(): number {
    return this.#version;
  }

  get totals(): NodeTotals {
    this.#totals ??= totalsOf(this.reflector.store.list());
    return this.#totals;
  }

  /** At most 30 s old. Undefined when there are too many kinds. */
  get kinds(): NodeKinds | undefined {
    const now = this.#clock.now();
    const { version, at = Number.NEGATIVE_INFINITY } = this.#kinds ?? {};
    if (version !== this.#version && now - at >= KINDS_EVERY_MS) {
      this.#kinds = { version: this.#version, at: now, value: nodeKindsOf(this.reflector.store.list()) };
    }
    return this.#kinds?.value;
  }

  readonly fitting: Required<Candidate>["nodesFor"] = (needs) => this.#fits.fit(needs);

  have(key: string): boolean {
    let known = this.#labelled.get(key);
    if (known === undefined) {
      known = this.reflector.store.list().some(({ metadata }) => metadata.labels?.[key] !== undefined);
      this.#labelled.set(key, known);
    }
    return known;
  }

  #onNode(event: ReflectorEvent<KubeNode>): void {
    if (event.type === "updated" && nodeFingerprint(event.object) === nodeFingerprint(event.previous)) return;
    if (this.#timer !== undefined) return;
    const waitMs = this.#emittedAt + CHANGES_EVERY_MS - this.#clock.now();
    if (waitMs <= 0) this.#tell();
    else this.#timer = this.#clock.after(waitMs, () => this.#tell());
  }

  /** What nodes are judged by has changed beside the nodes. */
  touch(): void {
    this.#timer?.cancel();
    this.#tell();
  }

  /** Reports the first change at once, and those of the next second together. */
  #tell(): void {
    this.#timer = undefined;
    this.#emittedAt = this.#clock.now();
    this.#totals = undefined;
    this.#fits.forget();
    this.#labelled.clear();
    this.#version = nextVersion();
    this.#onChange();
  }
}

/** Drops the list of images, which is kilobytes per node and unused. */
function withoutImages(node: Stored<KubeNode>): Stored<KubeNode> {
  if (node.status === undefined) return node;
  const { images: _images, ...status } = node.status;
  return { ...node, status };
}
