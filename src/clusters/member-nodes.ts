import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { KubeNode, Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { nodes } from "../kube/resources.ts";
import type { Candidate } from "../placement/candidate.ts";
import { type NodeKinds, nodeKindsOf } from "../placement/node-kinds.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { sizeAsKept } from "../runtime/holdings.ts";
import { Reflector, type ReflectorEvent } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Capacity, capacityOf, nodeFingerprint } from "./capacity.ts";
import { NodeFits } from "./node-fits.ts";

/** What a member's nodes are read with. */
export interface MemberNodesOptions {
  readonly client: ClusterClient;
  readonly budget: ByteBudget;
  readonly clock: Clock;
  readonly log: Logger;
  /** They have changed in a way that matters to placement. */
  readonly onChange: () => void;
  /** Their watch has come up, or failed. */
  readonly onState: () => void;
}

// Thousands of nodes are a second's work, and some of them change all the time.
const KINDS_EVERY_MS = 30_000;
// Thousands of nodes take tens of milliseconds to sum up, and among so many one changes every moment.
const CHANGES_EVERY_MS = 1_000;

// Of all members, one after the other of the same name too: what one has refused says nothing of the next.
let latestVersion = 0;

function nextVersion(): number {
  latestVersion += 1;
  return latestVersion;
}

/** The nodes of one member by watch, and what they offer together. */
export class MemberNodes {
  readonly #reflector: Reflector<KubeNode>;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #fits: NodeFits = new NodeFits(() => this.#reflector.store.list());
  /** Answers of `have` since the last change that was told; pods name few keys. */
  readonly #labelled = new Map<string, boolean>();
  #capacity: Capacity | undefined;
  #kinds: { readonly version: number; readonly at: number; readonly value: NodeKinds | undefined } | undefined;
  #version = nextVersion();
  #toldAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ client, budget, clock, log, onChange, onState }: MemberNodesOptions) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.#reflector = new Reflector({
      client,
      resource: nodes,
      // A member may be a host itself: what its own members have is theirs to offer.
      labelSelector: `!${VIRTUAL_NODE_LABEL}`,
      budget,
      clock,
      log,
      transform: withoutImages,
      sizeOf: sizeAsKept,
      onEvent: (event) => this.#onNode(event),
      onState,
    });
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    this.#timer?.cancel();
    return this.#reflector.stop();
  }

  /** Tries at once what has failed. */
  retry(): void {
    this.#reflector.retry();
  }

  /** They have been listed since this connection began: what they offer is known. */
  get read(): boolean {
    return this.#reflector.store.synced;
  }

  /** Why they cannot be read, and since when; epoch ms. */
  get failing(): Reflector<KubeNode>["failing"] {
    return this.#reflector.failing;
  }

  /** Another one after each of their changes that matter to placement, and one that no other member has had. */
  get version(): number {
    return this.#version;
  }

  /** As of the last change that was told. */
  get capacity(): Capacity {
    this.#capacity ??= capacityOf(this.#reflector.store.list());
    return this.#capacity;
  }

  /** In few words, for the host, and not newer than people need it; undefined when there are too many kinds. */
  get kinds(): NodeKinds | undefined {
    const now = this.#clock.now();
    const { version, at = Number.NEGATIVE_INFINITY } = this.#kinds ?? {};
    if (version !== this.#version && now - at >= KINDS_EVERY_MS) {
      this.#kinds = { version: this.#version, at: now, value: nodeKindsOf(this.#reflector.store.list()) };
    }
    return this.#kinds?.value;
  }

  /** How many of them a pod with these needs may go to. */
  readonly fitting: Required<Candidate>["nodesFor"] = (needs) => this.#fits.fit(needs);

  /** Reports whether any of them has a label of this key. */
  have(key: string): boolean {
    let known = this.#labelled.get(key);
    if (known === undefined) {
      known = this.#reflector.store.list().some(({ metadata }) => metadata.labels?.[key] !== undefined);
      this.#labelled.set(key, known);
    }
    return known;
  }

  #onNode(event: ReflectorEvent<KubeNode>): void {
    if (event.type === "updated" && nodeFingerprint(event.object) === nodeFingerprint(event.previous)) return;
    if (this.#timer !== undefined) return;
    const waitMs = this.#toldAt + CHANGES_EVERY_MS - this.#clock.now();
    if (waitMs <= 0) this.#tell();
    else this.#timer = this.#clock.after(waitMs, () => this.#tell());
  }

  /** The first change after a while counts at once; of those that follow, all that come within a second are one. */
  #tell(): void {
    this.#timer = undefined;
    this.#toldAt = this.#clock.now();
    this.#capacity = undefined;
    this.#fits.forget();
    this.#labelled.clear();
    this.#version = nextVersion();
    this.#onChange();
  }
}

/** Node objects list every image they hold: kilobytes that nobody here reads. */
function withoutImages(node: Stored<KubeNode>): Stored<KubeNode> {
  if (node.status === undefined) return node;
  const { images: _images, ...status } = node.status;
  return { ...node, status };
}
