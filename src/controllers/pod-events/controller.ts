import { defined } from "../../api/defined.ts";
import { type KubeEvent, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { MemberWatches } from "../../clusters/member-watches.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type HostOwner, ownerOf } from "../../pods/delegate.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ControllerEvents } from "../events.ts";
import { EventFollower } from "./follower.ts";
import { awaitsToken, concernsHost, mirror } from "./mirror.ts";
import { type EventOutcome, EventWriter } from "./writer.ts";

// An event may arrive before its pod, on another watch. Most waiting events concern pods that are no delegates, and a busy member
// has more than are kept, so each member has a limit of its own.
const SECOND_LOOK_MS = 2_000;
const MOST_WAITING_PER_MEMBER = 1_000;
// The longest events of kubelets carry 10 KiB of a probe's output. The host stores events for an hour.
const LARGEST_EVENT = 32 * 1024;

export interface PodEventOptions extends ControllerOptions {
  /** A client for events alone: they must not delay other requests. */
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "members">;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly events: Events<ControllerEvents>;
  readonly warningsOnly: boolean;
  readonly onOutcome?: (outcome: EventOutcome) => void;
}

interface Waiting {
  readonly member: Member;
  readonly event: Stored<KubeEvent>;
  readonly isNew: boolean;
}

/** Writes the events of delegates to their proxies. Best effort, as all events are. */
export class PodEventController {
  readonly #options: PodEventOptions;
  readonly #log: Logger;
  readonly #writer: EventWriter;
  readonly #followers: MemberWatches<EventFollower>;
  readonly #waiting = new Map<Member, Waiting[]>();
  /** Epoch ms. */
  readonly #startedAt: number;
  #timer: Timer | undefined;
  #started = false;

  constructor(options: PodEventOptions) {
    this.#options = options;
    const { host, clock, onOutcome } = options;
    this.#startedAt = clock.wall();
    this.#log = options.log.child({ controller: "pod-events" });
    this.#writer = new EventWriter({ host, clock, log: this.#log, ...defined({ onOutcome }) });
    this.#followers = new MemberWatches((member) => this.#follower(member));
    options.events.onAny(["cluster", "connection"], () => this.#refresh());
    options.events.on("delegate", (member) => this.#follow(member));
  }

  start(): void {
    this.#started = true;
    this.#refresh();
  }

  /** Ends following members that have no delegate any more. */
  #refresh(): void {
    const { registry } = this.#options;
    if (this.#started) this.#followers.follow(registry.members().filter(({ delegates }) => delegates.size > 0));
  }

  #follow(member: Member): void {
    if (this.#started && this.#followers.of(member) === undefined && member.delegates.size > 0)
      this.#followers.add(member);
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#followers.stop();
    await this.#writer.stop();
  }

  #follower(member: Member): EventFollower {
    const { clock, warningsOnly } = this.#options;
    return new EventFollower({
      client: member.client,
      fieldSelector: `involvedObject.kind=Pod${warningsOnly ? ",type=Warning" : ""}`,
      clock,
      log: this.#log.child({ member: member.name }),
      onEvent: (event, isNew) => this.#onEvent({ member, event, isNew }),
    });
  }

  #onEvent(waiting: Waiting): void {
    if (JSON.stringify(waiting.event).length > LARGEST_EVENT) return;
    if (!concernsHost(waiting.event) || this.#tell(waiting)) return;
    const earlier = this.#waiting.get(waiting.member) ?? [];
    if (earlier.length >= MOST_WAITING_PER_MEMBER) return;
    earlier.push(waiting);
    this.#waiting.set(waiting.member, earlier);
    this.#timer ??= this.#options.clock.after(SECOND_LOOK_MS, () => this.#lookAgain());
  }

  #lookAgain(): void {
    this.#timer = undefined;
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const each of waiting) this.#tell(each);
  }

  /** Reports whether the event was about a known delegate. */
  #tell({ member, event, isNew }: Waiting): boolean {
    const owner = ownerOfDelegate(member, event);
    if (owner === undefined) return false;
    const proxy = this.#options.proxies.get(objectKey(owner));
    if (proxy === undefined || !isPlacedIn(member.name, proxy, owner) || awaitsToken(event, owner)) return true;
    // No earlier leader wrote events of a proxy that is younger than this controller.
    const isYoung = Date.parse(proxy.metadata.creationTimestamp ?? "") > this.#startedAt;
    this.#writer.write(member.name, mirror(event, owner, member.name), isNew || isYoung);
    return true;
  }
}

/** Reports whether the proxy may have its delegate in the member: a hostile member could claim any pod of the host. */
function isPlacedIn(member: string, proxy: Stored<Pod>, { uid }: HostOwner): boolean {
  return proxy.metadata.uid === uid && (memberOf(proxy) ?? member) === member;
}

function ownerOfDelegate(member: Member, { involvedObject }: KubeEvent): HostOwner | undefined {
  const key = objectKey(involvedObject);
  for (const delegate of [member.delegates.get(key), member.delegates.departed(key)]) {
    if (delegate !== undefined && delegate.metadata.uid === involvedObject.uid) return ownerOf(delegate);
  }
  return undefined;
}
