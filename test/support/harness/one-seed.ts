import fc from "fast-check";
import "./tell-failures.ts";

// A single seed per process: a retried test draws the same inputs, so a property never passes by chance.
fc.configureGlobal({ seed: Date.now() & 0x7fff_ffff });
