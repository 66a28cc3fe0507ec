import type { Memory } from "../../../src/controllers/delegation/model/memory.ts";
import { Memories } from "../../../src/controllers/delegation/placement/memories.ts";

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
    const { fresh, denied, uncertain, doubt, binding, recording, promised, attempts, gone } = memories.of(uid);
    const isKnown = [uncertain, binding, recording, promised, gone].some((part) => part !== undefined);
    if (fresh && !isKnown && Object.keys(attempts).length === 0) continue;
    result[uid] = {
      fresh,
      // The number of refusals only changes the backoff.
      attempts: Object.fromEntries(
        Object.entries(attempts).map(([name, attempt]) => [name, { ...attempt, refusals: 1 }]),
      ),
      ...(denied === undefined ? {} : { denied }),
      ...(uncertain === undefined ? {} : { uncertain }),
      ...(doubt === undefined ? {} : { doubt }),
      ...(binding === undefined ? {} : { binding }),
      ...(recording === undefined ? {} : { recording }),
      ...(promised === undefined ? {} : { promised }),
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
      const { doubt } = entry;
      const old = doubt === undefined ? {} : { doubt: { ...doubt, since: LONG_AGO, lastAt: LONG_AGO } };
      return [uid, { ...entry, ...old, attempts: Object.fromEntries(attempts) }];
    }),
  );
}

function restore(memories: Memories, uid: string, memory: Memory): void {
  const { fresh, denied = [], attempts, uncertain, doubt, binding, recording, promised, gone } = memory;
  if (binding !== undefined) memories.noteBinding(uid, binding);
  if (recording !== undefined) memories.noteRecording(uid, recording);
  if (gone !== undefined) memories.noteGone(uid, gone);
  if (!fresh) memories.noteInherited(uid);
  for (const member of denied) memories.noteDenied(uid, member);
  if (uncertain !== undefined && doubt !== undefined) {
    const { message } = doubt;
    for (const at of [doubt.since, doubt.lastAt]) memories.noteUncertain(uid, uncertain, { at, message });
  }
  for (const [name, { since, refusal, until = 0, parked }] of Object.entries(attempts)) {
    memories.noteAttempt(uid, name, since, parked);
    if (refusal !== undefined) memories.noteRefusal(uid, refusal, 0, until - FIRST_RETRY_MS);
  }
  if (promised !== undefined) memories.notePromised(uid, promised);
  if (uncertain !== undefined) memories.noteUncertain(uid, uncertain);
}
