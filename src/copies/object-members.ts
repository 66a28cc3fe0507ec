import { z } from "zod";
import type { AnyObject } from "../api/delegated-type.ts";
import { jsonOrNothing } from "../api/json.ts";
import { MEMBERS_ANNOTATION } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import type { MemberCopy } from "./object-status.ts";
import { recordedMember } from "./objects.ts";
import type { CopyHealth } from "./type-expressions.ts";

export interface ObjectMember extends MemberCopy {
  /** Why the member does not get the object. Absent: it gets it. */
  readonly excluded?: string;
  /** Why an override does not fit the object, so that the member keeps its copy, or gets none. */
  readonly misfit?: string;
  /** The member answers, and its copies are followed. */
  readonly isUsable: boolean;
  /** The member never let its copies be read, and the object's record knows none there. Absent: not so. */
  readonly isClosed?: boolean;
  /** When no request can create the copy any more; epoch ms. Absent: none can. */
  readonly settlesAt?: number;
  /** The member's copies were read, or cannot be, for want of the definition for example. */
  readonly isKnown: boolean;
  /** The member has a copy, which may be of an earlier object of the same name. */
  readonly hasCopy: boolean;
  /** Why the member has no copy, or another version. */
  readonly refusal?: string;
  /** Who keeps changing or deleting the copy in the member, so that it is left alone for a while. */
  readonly contested?: string;
  /** Why the last write of the copy failed, though the next one may succeed. */
  readonly failing?: string;
  /** Why the member keeps a copy that is to be deleted. */
  readonly deletionRefusal?: string;
  readonly health?: CopyHealth;
}

/** The record of one member's copy, in an annotation of the host's object. */
export interface MemberRecord {
  readonly member: string;
  /**
   * `Waiting`: the copy is to be created or changed. `Contested`: another manager of the member keeps changing it. `Leaving`: it is
   * to be deleted.
   */
  readonly state: "InStep" | "Waiting" | "Contested" | "Refused" | "Leaving";
  /** The host's generation of the object that the copy had when it was last in step. Absent for types without generations. */
  readonly generation?: number;
  /** The copy's health by its type: the status of a condition. */
  readonly health?: string;
  /** Who contests the copy, why the member refuses it, does not take it yet, or refuses its deletion; else why its health is not known. */
  readonly message?: string;
  /** When the member came into this state; RFC 3339. */
  readonly since: string;
}

const recordSchema: z.ZodType<readonly MemberRecord[]> = z.array(
  z.object({
    member: z.string(),
    state: z.enum(["InStep", "Waiting", "Contested", "Refused", "Leaving"]),
    generation: z.number().exactOptional(),
    health: z.string().exactOptional(),
    message: z.string().exactOptional(),
    since: z.string(),
  }),
);

// States of a member with a copy.
const HAVING: ReadonlySet<MemberRecord["state"]> = new Set(["InStep", "Leaving"]);

// An annotation holds 256 KiB in all, and a host may have hundreds of members, which share this much.
const LONGEST_MESSAGE = 300;
const ALL_MESSAGES = 32 * 1024;

/** Returns the members on record. Undefined if there is no record, or an unreadable one. */
export const membersOfObject: (object: Stored<AnyObject>) => readonly MemberRecord[] | undefined = memoized(
  ({ metadata }) => {
    const text = metadata.annotations?.[MEMBERS_ANNOTATION];
    return text === undefined ? undefined : recordSchema.safeParse(jsonOrNothing(text)).data;
  },
);

/** Returns the record to write at the time `at`. Undefined if the object has it. */
export function nextMembers(
  object: Stored<AnyObject>,
  places: readonly ObjectMember[],
  at: string,
): readonly MemberRecord[] | undefined {
  const before = membersOfObject(object);
  const longest = Math.min(LONGEST_MESSAGE, Math.floor(ALL_MESSAGES / places.length));
  const members = places
    .toSorted((a, b) => (a.member < b.member ? -1 : 1))
    .flatMap((place) =>
      recordOf(object, { place, before: before?.find(({ member }) => member === place.member), at, longest }),
    );
  return membersContent(members) === membersContent(before ?? []) ? undefined : members;
}

/** Returns the part of a record that makes a write worthwhile. */
export function membersContent(members: readonly MemberRecord[]): string {
  return JSON.stringify(
    members.map(({ since: _, message = "", ...rest }) => ({ ...rest, words: withoutNumbers(message) })),
  );
}

/** Reports whether the object's record says that the member has, or had, a copy. */
export function isOnRecord(object: Stored<AnyObject>, name: string): boolean {
  if (recordedMember(object) === name) return true;
  const record = membersOfObject(object)?.find(({ member }) => member === name);
  return record !== undefined && (record.generation !== undefined || HAVING.has(record.state));
}

function recordOf(
  { metadata }: Stored<AnyObject>,
  {
    place,
    before,
    at,
    longest,
  }: {
    readonly place: ObjectMember;
    readonly before: MemberRecord | undefined;
    readonly at: string;
    /** Characters of a message. */
    readonly longest: number;
  },
): MemberRecord[] {
  const {
    member,
    copy,
    hasCopy,
    inStep,
    excluded,
    isUsable,
    misfit,
    refusal = misfit,
    contested,
    failing,
    deletionRefusal,
    health,
  } = place;
  if (excluded !== undefined && !hasCopy) return [];
  // A member that stops answering costs no write for each object: the Cluster says so.
  if (!isUsable && before !== undefined) return [before];
  const isContested = contested !== undefined && (inStep || refusal === undefined);
  const [state, why]: readonly [MemberRecord["state"], string | undefined] =
    excluded !== undefined
      ? ["Leaving", deletionRefusal]
      : isContested
        ? ["Contested", contested]
        : inStep
          ? ["InStep", health?.message]
          : refusal === undefined
            ? ["Waiting", failing ?? health?.message]
            : ["Refused", refusal];
  const generation = inStep ? metadata.generation : before?.generation;
  const message = why?.slice(0, longest);
  return [
    {
      member,
      state,
      ...(generation === undefined || copy === undefined ? {} : { generation }),
      ...(health?.status === undefined ? {} : { health: health.status }),
      ...(message === undefined ? {} : { message }),
      since: before?.state === state ? before.since : at,
    },
  ];
}

// Quotas tell amounts that change with every other object.
function withoutNumbers(message: string): string {
  return message.replaceAll(/\d+/g, "0");
}
