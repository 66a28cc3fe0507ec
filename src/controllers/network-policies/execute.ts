import type { NetworkPolicy, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import { networkPolicies as resource } from "../../kube/resources.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { referenceTo } from "../../runtime/event.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { Contests } from "../copying/contests.ts";
import { CopyWriter, type CopyWriterOptions } from "../copying/copy-writer.ts";
import { isOfEarlier, type OfVersion, REFUSED_FOR_MS, refusedVersion, restMsAfter } from "../copying/failures.ts";
import { inMember } from "../copying/in-member.ts";
import { type LastTold, toldNow } from "../told-for.ts";
import { type Action, type Observed, type Place, type PlaceKey, placeKey, placeOf } from "./model.ts";

export interface ExecutorOptions extends Omit<CopyWriterOptions<PlaceKey>, "onStays"> {
  readonly recorder: EventRecorder;
  readonly registry: Registry;
  /** Whether pods may start there has another answer. */
  readonly onRefusal: (place: Place) => void;
}

/** Why a member has not what a policy says. */
interface Refusal extends OfVersion {
  readonly message: string;
  /** Epoch ms. */
  readonly until: number;
  readonly told: LastTold;
}

/** What is remembered of one namespace in one member. */
interface PlaceMemory {
  /** By the name of the host's policy, as are the contests. */
  readonly refusals: Map<string, Refusal>;
  readonly contests: Contests<string>;
}

type Context = ActionContext<PlaceKey>;
type Result = Promise<Shown<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;
type Policy = Stored<NetworkPolicy>;

/** Carries out the writes of the controller of network policies, and remembers what members refused. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #places = new Map<PlaceKey, PlaceMemory>();
  readonly #writer: CopyWriter<PlaceKey>;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#writer = new CopyWriter({ ...options, onStays: (key) => options.onRefusal(placeOf(key)) });
  }

  /** Why the member did not take the policy when it was last tried. */
  refusal(place: Place, source: Policy): string | undefined {
    return this.#refusalOf(place, source)?.message;
  }

  /** Until when pods are kept away from the place by a refusal; epoch ms. */
  refusedUntil(place: Place): number | undefined {
    const refusals = [...(this.#places.get(placeKey(place))?.refusals.values() ?? [])];
    return refusals.length === 0 ? undefined : Math.max(...refusals.map(({ until }) => until));
  }

  /** Until when a copy that somebody else keeps changing or deleting is left so; epoch ms. */
  contestedUntil(place: Place, { metadata }: Policy): number | undefined {
    return this.#places.get(placeKey(place))?.contests.until(metadata.name, metadata.resourceVersion);
  }

  /** Until when this version of the policy is not written again; epoch ms. */
  restsUntil(place: Place, source: Policy): number | undefined {
    const refusal = this.#refusalOf(place, source);
    if (refusal !== undefined && !isOfEarlier(refusal, source.metadata.resourceVersion)) return refusal.until;
    return this.contestedUntil(place, source);
  }

  /** The uids of copies on their way out, of those that are still there. */
  leaving(place: Place, copies: readonly Policy[]): ReadonlySet<string> {
    return this.#writer.leaving(placeKey(place), copies);
  }

  /** Whether the copy is on its way out. */
  isLeaving(place: Place, copy: Policy): boolean {
    return this.#writer.isLeaving(placeKey(place), copy);
  }

  /** The namespace has these policies on the host, and no others. */
  noteSources(place: Place, sources: readonly Policy[]): void {
    this.#places.get(placeKey(place))?.contests.retain(new Set(sources.map(({ metadata }) => metadata.name)));
  }

  /** Nothing is left of the namespace's copies, and nobody wants any. */
  forget(place: Place): void {
    this.#places.delete(placeKey(place));
    this.#writer.forget(placeKey(place));
  }

  /** Does one action; the result says when the stores show it. Rejects with KubeError. */
  execute(action: Action, context: Context): Result {
    const { place } = action;
    return inMember(this.#options.registry, place.member, async (member) => {
      switch (action.type) {
        case "create":
          return this.#create(member, action, context);
        case "patch":
          return this.#patch(member, action, context);
        case "delete":
          return this.#delete(member, action, context);
        case "reconsider":
          this.#of(place).refusals.clear();
          this.#options.onRefusal(place);
          return () => true;
      }
    });
  }

  async #create(member: Member, { place, object, source }: ActionOf<"create">, context: Context): Result {
    const { signal } = context;
    const name = object.metadata?.name ?? "";
    const ref = { namespace: place.namespace, name };
    const made = await this.#writer.make({ member, resource, ref, object, signal });
    switch (made.type) {
      case "made":
      case "found":
        if (made.type === "made") this.#noteWritten(place, source, context);
        this.#of(place).refusals.delete(source.metadata.name);
        return ({ copies }) => copies.some(({ metadata }) => metadata.uid === made.uid);
      case "gone":
        return () => true;
      case "foreign": {
        const message = `NetworkPolicy ${name}, the name of the copy of ${source.metadata.name}, is there already and was not made by Legation for this host`;
        return this.#refuse(place, source, { message, restMs: REFUSED_FOR_MS }, context);
      }
      case "refused":
      case "failing": {
        const message = `its API server refused NetworkPolicy ${source.metadata.name}, which may concern the pod: ${made.detail}`;
        const of = refusedVersion(made, source.metadata.resourceVersion);
        return this.#refuse(place, source, { message, restMs: restMsAfter(made), ...of }, context);
      }
    }
  }

  async #patch(member: Member, { place, copy, patch, source }: ActionOf<"patch">, context: Context): Result {
    const ref = { namespace: place.namespace, name: copy.metadata.name };
    const changed = await this.#writer.change({ member, resource, ref, patch, signal: context.signal });
    if (changed.type === "refused" || changed.type === "failing") {
      const message = `its API server refused the change of NetworkPolicy ${source.metadata.name}, which may concern the pod: ${changed.detail}`;
      const of = refusedVersion(changed, source.metadata.resourceVersion);
      return this.#refuse(place, source, { message, restMs: restMsAfter(changed), ...of }, context);
    }
    if (changed.type === "changed") {
      this.#noteWritten(place, source, context);
      this.#of(place).refusals.delete(source.metadata.name);
    }
    return isNoLonger(copy);
  }

  async #delete(member: Member, { place, copy }: ActionOf<"delete">, { signal }: Context): Result {
    await this.#writer.delete(placeKey(place), { member, resource, copy: copy.metadata, signal });
    return isNoLonger(copy);
  }

  #refusalOf(place: Place, { metadata }: Policy): Refusal | undefined {
    return this.#places.get(placeKey(place))?.refusals.get(metadata.name);
  }

  #noteWritten(place: Place, { metadata }: Policy, { log }: Context): void {
    const { name, resourceVersion } = metadata;
    const { contests } = this.#of(place);
    contests.noteAndTell(name, resourceVersion, { ...place, kind: "NetworkPolicy", name }, log);
  }

  /** Pods that run already may be under other rules than their author's: it is told, and not only of pods that wait. */
  #refuse(
    place: Place,
    source: Policy,
    { message, restMs, ...of }: { readonly message: string; readonly restMs: number } & OfVersion,
    { log }: Context,
  ): Shown<Observed> {
    const { recorder, clock, onRefusal } = this.#options;
    const { name } = source.metadata;
    const { refusals } = this.#of(place);
    const now = clock.now();
    const last = refusals.get(name)?.told;
    const told = toldNow(message, last, now);
    refusals.set(name, { message, until: now + restMs, told, ...of });
    onRefusal(place);
    if (told !== last) {
      log.warn({ member: place.member }, message);
      recorder.record(referenceTo(resource, source), {
        reason: "NotInMember",
        message: `${place.member}: ${message}`,
      });
    }
    return () => true;
  }

  #of(place: Place): PlaceMemory {
    const key = placeKey(place);
    const { clock } = this.#options;
    const known = this.#places.get(key) ?? { refusals: new Map(), contests: new Contests(clock) };
    this.#places.set(key, known);
    return known;
  }
}

function isNoLonger({ metadata: { uid, resourceVersion } }: Policy): Shown<Observed> {
  return ({ copies }) =>
    !copies.some(({ metadata }) => metadata.uid === uid && metadata.resourceVersion === resourceVersion);
}
