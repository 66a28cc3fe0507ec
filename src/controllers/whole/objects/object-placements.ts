import { defined } from "../../../api/defined.ts";
import type { AnyObject, DelegatedType } from "../../../api/delegated-type.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import { isOfServices, withoutAllocated } from "../../../api/service-fields.ts";
import type { Member } from "../../../clusters/member.ts";
import { isWantedInMembers } from "../../../copies/objects.ts";
import { ObjectsInMembers } from "../../../copies/objects-in-members.ts";
import { flavorExcludes, outsideQueue } from "../../../copies/queued-objects.ts";
import type { Source } from "../../../copies/source.ts";
import type { Candidate } from "../../../placement/candidate.ts";
import type { Ranking } from "../../../placement/rank.ts";
import {
  type ObjectRules,
  objectToPlace,
  placementOf,
  rankMembers,
} from "../../../scheduling/whole/object-placement.ts";

export interface ObjectPlacementsOptions {
  readonly type: DelegatedType;
  readonly rules: ObjectRules;
  readonly registry: { members(): readonly Pick<Member, "candidate">[] };
}

/** The parts of one object that members get: copies, record and status are made from this. */
export interface PlacedObject {
  /** Why no member is looked for. */
  readonly problem?: string;
  /** By the members' names. */
  readonly members: ReadonlyMap<string, PlacedInMember>;
}

export interface PlacedInMember {
  /** Why the member does not get the object. Absent: it gets it. */
  readonly excluded?: string;
  /** The object with the member's share of the replicas and its author's overrides. */
  readonly source: Source<AnyObject>;
}

interface Computed {
  readonly candidates: readonly Candidate[];
  readonly placed: PlacedObject;
}

/** Computes what members get of each version of an object, once while no member changes. */
export class ObjectPlacements {
  readonly #options: ObjectPlacementsOptions;
  readonly #inMembers: ObjectsInMembers<AnyObject>;
  #computed = new WeakMap<Stored<AnyObject>, Computed>();
  #candidates: readonly Candidate[] = [];

  constructor(options: ObjectPlacementsOptions) {
    this.#options = options;
    this.#inMembers = new ObjectsInMembers(isOfServices(options.type) ? withoutAllocated : undefined);
  }

  of(object: Stored<AnyObject>): PlacedObject {
    const candidates = this.#currentCandidates();
    const known = this.#computed.get(object);
    if (known?.candidates === candidates) return known.placed;
    const placed = this.#compute(object, candidates);
    this.#computed.set(object, { candidates, placed });
    return placed;
  }

  rank(object: Stored<AnyObject>): Ranking {
    return rankMembers(objectToPlace(object, { ...this.#options, candidates: this.#currentCandidates() }));
  }

  /** Has all computed anew: a namespace, or the defaults of all, have changed. */
  reset(): void {
    this.#computed = new WeakMap();
  }

  #compute(object: Stored<AnyObject>, candidates: readonly Candidate[]): PlacedObject {
    const { problem, members } = placementOf(objectToPlace(object, { ...this.#options, candidates }));
    const wanted = isWantedInMembers(object);
    const placed = members.map(({ candidate, share, ...member }): [string, PlacedInMember] => {
      const excluded = wanted ? member.excluded : "the object is taken back";
      const sourceIn = (): Source<AnyObject> => {
        if (wanted && problem !== undefined) return { state: "unknown", message: problem };
        if (excluded !== undefined) return { state: "missing" };
        return this.#sourceIn(object, candidate, share);
      };
      return [candidate.name, { ...defined({ excluded }), source: sourceIn() }];
    });
    return { ...defined({ problem }), members: new Map(placed) };
  }

  #sourceIn(object: Stored<AnyObject>, candidate: Candidate, share: number | undefined): Source<AnyObject> {
    const { type } = this.#options;
    const message = flavorExcludes(object, type, candidate);
    if (message !== undefined) return { state: "unknown", message };
    const given = this.#inMembers.of(object, candidate, { share, pointer: type.spec.replicas });
    return given.state === "present" ? { ...given, object: outsideQueue(given.object, type, candidate) } : given;
  }

  /** Returns the same list while no member changes. */
  #currentCandidates(): readonly Candidate[] {
    const now = this.#options.registry.members().map((member) => member.candidate());
    const isSame = now.length === this.#candidates.length && now.every((one, at) => one === this.#candidates[at]);
    if (!isSame) this.#candidates = now;
    return this.#candidates;
  }
}
