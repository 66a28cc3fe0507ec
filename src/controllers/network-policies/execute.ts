import type { NetworkPolicy, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import { isKubeError } from "../../kube/errors.ts";
import { networkPolicies as resource } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { Contests } from "../copying/contests.ts";
import { makeCopy, REFUSALS } from "../copying/make-copy.ts";
import { type Action, type Observed, type Place, type PlaceKey, placeKey } from "./model.ts";

export interface ExecutorOptions {
  readonly registry: Registry;
  readonly memberNamespaces: MemberNamespaces;
  readonly hostId: string;
  /** Pods that wait for the copies shall know that they do so in vain. */
  readonly onRefusal: (place: Place) => void;
  readonly clock: Clock;
}

/** Why a member has not what one version of a policy says. */
interface Refusal {
  readonly version: string;
  readonly message: string;
  /** Epoch ms. */
  readonly until: number;
}

type Context = ActionContext<PlaceKey>;
type Result = Promise<Shown<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;
type Policy = Stored<NetworkPolicy>;

// Whoever forbids it there may have it allowed, and a quota may be raised.
const REFUSED_FOR_MS = 60_000;

/** Carries out the writes of the controller of network policies, and remembers what members refused. */
export class Executor {
  readonly #options: ExecutorOptions;
  /** Both by the name of the host's policy. */
  readonly #places = new Map<
    PlaceKey,
    { readonly refusals: Map<string, Refusal>; readonly contests: Contests<string> }
  >();

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** Why the member did not take this version of the policy when it was last tried. */
  refusal(place: Place, source: Policy): string | undefined {
    return this.#refusalOf(place, source)?.message;
  }

  /** Until when a copy that somebody else keeps changing or deleting is left so; epoch ms. */
  contestedUntil(place: Place, { metadata }: Policy): number | undefined {
    return this.#places.get(placeKey(place))?.contests.until(metadata.name, metadata.resourceVersion);
  }

  /** Until when this version of the policy is not written again; epoch ms. */
  restsUntil(place: Place, source: Policy): number | undefined {
    return this.#refusalOf(place, source)?.until ?? this.contestedUntil(place, source);
  }

  /** Nothing is left of the namespace's copies, and nobody wants any. */
  forget(place: Place): void {
    this.#places.delete(placeKey(place));
  }

  /** Does one action; the result says when the stores show it. Rejects with KubeError. */
  async execute(action: Action, context: Context): Result {
    const member = this.#options.registry.member(action.place.member);
    if (member === undefined) return undefined;
    try {
      switch (action.type) {
        case "create":
          return await this.#create(member, action, context);
        case "patch":
          return await this.#patch(member, action, context);
        case "delete":
          return await this.#delete(member, action, context);
      }
    } catch (error) {
      member.noteFailure(error);
      throw error;
    }
  }

  async #create(member: Member, { place, object, source }: ActionOf<"create">, context: Context): Result {
    const { memberNamespaces: namespaces, hostId } = this.#options;
    const { signal } = context;
    const name = object.metadata?.name ?? "";
    const ref = { namespace: place.namespace, name };
    const made = await makeCopy({ member, namespaces, hostId, resource, ref, object, signal });
    switch (made.type) {
      case "made":
        this.#noteWritten(place, source, context);
        return ({ copies }) => copies.some(({ metadata }) => metadata.uid === made.uid);
      case "found":
        return ({ copies }) => copies.some(({ metadata }) => metadata.uid === made.uid);
      case "gone":
        return () => true;
      case "foreign":
        return this.#refuse(
          place,
          source,
          `NetworkPolicy ${name} is there already and was not made by Legation for this host`,
        );
      case "refused":
        return this.#refuse(
          place,
          source,
          `its API server refused NetworkPolicy ${source.metadata.name}, which may concern the pod: ${made.detail}`,
        );
    }
  }

  async #patch(member: Member, { place, copy, patch, source }: ActionOf<"patch">, context: Context): Result {
    const { name } = copy.metadata;
    try {
      await member.client.patch(
        resource,
        { ...place, name },
        { type: "json", body: patch },
        { signal: context.signal, metadataOnly: true },
      );
      this.#noteWritten(place, source, context);
    } catch (error) {
      if (isKubeError(error, ...REFUSALS)) {
        return this.#refuse(
          place,
          source,
          `its API server refused the change of NetworkPolicy ${source.metadata.name}, which may concern the pod: ${error.detail}`,
        );
      }
      // Changed, gone, or another by now: looked at again when the watch has told.
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
    return isNoLonger(copy);
  }

  async #delete(member: Member, { place, copy }: ActionOf<"delete">, { signal }: Context): Result {
    const { name, uid, resourceVersion } = copy.metadata;
    try {
      await member.client.delete(resource, { namespace: place.namespace, name }, { uid, resourceVersion, signal });
    } catch (error) {
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
    return isNoLonger(copy);
  }

  #refusalOf(place: Place, { metadata }: Policy): Refusal | undefined {
    const refusal = this.#places.get(placeKey(place))?.refusals.get(metadata.name);
    return refusal?.version === metadata.resourceVersion ? refusal : undefined;
  }

  #noteWritten(place: Place, { metadata }: Policy, { log }: Context): void {
    const { refusals, contests } = this.#of(place);
    refusals.delete(metadata.name);
    const { name, resourceVersion } = metadata;
    contests.noteAndTell(name, resourceVersion, { ...place, kind: "NetworkPolicy", name }, log);
  }

  #refuse(place: Place, { metadata }: Policy, message: string): Shown<Observed> {
    const until = this.#options.clock.now() + REFUSED_FOR_MS;
    this.#of(place).refusals.set(metadata.name, { version: metadata.resourceVersion, message, until });
    this.#options.onRefusal(place);
    return () => true;
  }

  #of(place: Place) {
    const key = placeKey(place);
    const known = this.#places.get(key) ?? {
      refusals: new Map<string, Refusal>(),
      contests: new Contests<string>(this.#options.clock),
    };
    this.#places.set(key, known);
    return known;
  }
}

function isNoLonger({ metadata: { name, resourceVersion } }: Policy): Shown<Observed> {
  return ({ copies }) =>
    !copies.some(({ metadata }) => metadata.name === name && metadata.resourceVersion === resourceVersion);
}
