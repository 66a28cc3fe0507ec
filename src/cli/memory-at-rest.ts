import { setFlagsFromString } from "node:v8";

const LOOK_EVERY_MS = 2_000;
/** Looks in a row until a process counts as resting. */
const LOOKS = 5;
/** Share of a core. A controller of a thousand members uses less while nothing happens. */
const REST = 0.2;

/** How much the process uses, and the switch of V8. */
interface Heap {
  /** Processor time since the start of the process; µs. */
  cpuUsage(): { readonly user: number; readonly system: number };
  setFlag(flag: string): void;
}

const OWN: Heap = { cpuUsage: () => process.cpuUsage(), setFlag: setFlagsFromString };

/**
 * Has V8 give memory back while the process rests. While it works, that would take a quarter of its processor time, and with a
 * heap of many members half of it: V8 would go through the whole heap every few seconds.
 */
export function saveMemoryAtRest({ cpuUsage, setFlag }: Heap = OWN): void {
  let before = cpuUsage();
  let rests = 0;
  const look = (): void => {
    const now = cpuUsage();
    const usedMs = (now.user - before.user + now.system - before.system) / 1000;
    before = now;
    rests = usedMs < REST * LOOK_EVERY_MS ? rests + 1 : 0;
    // On the command line the flag would also shrink the young generation to 1 MB.
    if (rests === 0) setFlag("--no-optimize-for-size");
    else if (rests === LOOKS) setFlag("--optimize-for-size");
  };
  // A command that is done ends.
  setInterval(look, LOOK_EVERY_MS).unref();
}
