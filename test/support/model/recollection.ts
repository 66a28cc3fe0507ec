import { Memories } from "../../../src/scheduling/memories.ts";
import type { Memory } from "../../../src/scheduling/memory.ts";

/** The model's only time; only earlier and later times differ from it. */
export const NOW = 1_000_000_000;
/** Long before: every timeout has passed since. */
const LONG_AGO = 1;

const FIRST_RETRY_MS = 30_000;

type Recollections = Readonly<Record<string, Memory>>;

/** Applies a change to the controller's memory, starting from the remembered state. */
export function remember(memory: Recollections, change: (memories: Memories) => void): Recollections {
  const memories = new Memories({ now: () => 0 });
  for (const [uid, entry] of Object.entries(memory)) restore(memories, uid, entry);
  change(memories);
  const result: Record<string, Memory> = {};
  for (const uid of ["p1", "p2"]) {
    const { fresh, confirmedAbsent, uncertain, uncertainCreate, binding, recording, reserved, attempts, gone } =
      memories.of(uid);
    const isKnown = [uncertain, binding, recording, reserved, gone].some((part) => part !== undefined);
    if (fresh && !isKnown && Object.keys(attempts).length === 0) continue;
    result[uid] = {
      fresh,
      // The number of refusals only changes the backoff.
      attempts: Object.fromEntries(
        Object.entries(attempts).map(([name, attempt]) => [name, { ...attempt, refusalCount: 1 }]),
      ),
      ...(confirmedAbsent === undefined ? {} : { confirmedAbsent }),
      ...(uncertain === undefined ? {} : { uncertain }),
      ...(uncertainCreate === undefined ? {} : { uncertainCreate }),
      ...(binding === undefined ? {} : { binding }),
      ...(recording === undefined ? {} : { recording }),
      ...(reserved === undefined ? {} : { reserved }),
      ...(gone === undefined ? {} : { gone }),
    };
  }
  return result;
}

/** Returns the memory after all waits: schedulers had their time, and refusals are old. */
export function later(memory: Recollections): Recollections {
  return Object.fromEntries(
    Object.entries(memory).map(([uid, entry]) => {
      const attempts = Object.entries(entry.attempts).map(([name, attempt]): [string, typeof attempt] => [
        name,
        { ...attempt, since: LONG_AGO, ...(attempt.until === undefined ? {} : { until: NOW }) },
      ]);
      const { uncertainCreate } = entry;
      const old =
        uncertainCreate === undefined
          ? {}
          : { uncertainCreate: { ...uncertainCreate, since: LONG_AGO, lastAt: LONG_AGO } };
      return [uid, { ...entry, ...old, attempts: Object.fromEntries(attempts) }];
    }),
  );
}

function restore(memories: Memories, uid: string, memory: Memory): void {
  const {
    fresh,
    confirmedAbsent = [],
    attempts,
    uncertain,
    uncertainCreate,
    binding,
    recording,
    reserved,
    gone,
  } = memory;
  if (binding !== undefined) memories.noteSent(uid, { binding });
  if (recording !== undefined) memories.noteSent(uid, { recording });
  if (gone !== undefined) memories.noteGone(uid, gone);
  if (!fresh) memories.noteInherited(uid);
  for (const member of confirmedAbsent) memories.noteConfirmedAbsent(uid, member);
  if (uncertain !== undefined && uncertainCreate !== undefined) {
    const { message } = uncertainCreate;
    for (const at of [uncertainCreate.since, uncertainCreate.lastAt])
      memories.noteUncertain(uid, uncertain, { at, message });
  }
  for (const [name, { since, refusal, until = 0, parked }] of Object.entries(attempts)) {
    memories.noteAttempt(uid, name, since, parked);
    if (refusal !== undefined) memories.noteRefusal(uid, refusal, 0, until - FIRST_RETRY_MS);
  }
  if (reserved !== undefined) memories.noteReserved(uid, reserved);
  if (uncertain !== undefined) memories.noteUncertain(uid, uncertain);
}
