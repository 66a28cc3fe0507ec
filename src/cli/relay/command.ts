import { once } from "node:events";
import { isIP } from "node:net";
import { Relay } from "../../relay/main.ts";
import { realClock } from "../../runtime/clock.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { duration, everyAddress, listenAddress, readText, toggle, withGlobals } from "../shared/input.ts";
import { serveHealthAt } from "../shared/listening.ts";
import { LOG_LEVEL_FLAG, logLevel } from "../shared/serving-flags.ts";

const address = readText(
  (text) => (isIP(text) === 0 ? undefined : text),
  "is not an IP address; write e.g. 127.0.0.1, or leave it out for all addresses",
);

export const command: Equip = equipped({
  description:
    "Carries connections of relayed Services, which have the annotation legation.dev/relay, to pods on the host and in members " +
    "whose network is not joined. It listens on a port for each port of such a Service, and keeps no state: run as many as you " +
    "like. Writes its log as JSON lines to standard output.",
  flags: [
    ...flags({
      "--in-member":
        "run in a member, without any rights: pods there connect to Services of the host, whose relay connects to this one by " +
        "port-forward",
      "--listen-address <ip>": "where it takes connections (default: all addresses)",
      "--drain <duration>": "how long open connections may go on once it is asked to end (default: 5m)",
      "--health-listen <address>": "where /livez, /readyz and /metrics listen (default: nowhere)",
    }),
    LOG_LEVEL_FLAG,
  ],
  examples: {
    "relay --in-member --health-listen :8080": "in a member, as examples/relay/in-member.yaml has it",
    "relay --health-listen :8080": "in the cluster, with its service account",
  },
  input: withGlobals({
    inMember: toggle,
    listenAddress: address.optional(),
    drain: duration.prefault("5m"),
    healthListen: listenAddress.optional(),
    logLevel,
  }),
  run: async (options, { connect, signal }) => {
    const log = createLogger({ level: options.logLevel });
    const client = options.inMember ? undefined : (await connect(options, "host")).client;
    const metrics = new Metrics();
    const relay = new Relay({
      address: options.listenAddress ?? everyAddress(),
      drainMs: options.drain,
      client,
      clock: realClock,
      log,
      metrics,
    });
    const health = await serveHealthAt("--health-listen", options.healthListen, metrics, () => relay.notReady());
    try {
      await relay.start(signal);
      log.info("relay serves");
      if (!signal.aborted) await once(signal, "abort");
      await relay.close();
    } finally {
      await health?.close();
    }
  },
});
