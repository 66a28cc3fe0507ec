import { createClusterClient } from "../../../src/kube/http-client.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Agent } from "../../../src/tunnel/agent.ts";

// An agent in a process of its own, as in a member, with the address and keys of its only argument.
const { server, identity, target } = JSON.parse(process.argv[2] ?? "{}");
const hub = createClusterClient({
  cluster: "hub",
  credentials: { server, source: "test", insecureSkipTlsVerify: false, identity: () => identity, refresh: () => {} },
});
const agent = new Agent({
  version: "test",
  hub,
  target,
  credentials: () => Promise.reject(new Error("this agent has no service account")),
  onAuthorities: () => process.send?.("connected"),
  clock: realClock,
  log: createLogger({ level: "error" }),
});
process.once("disconnect", () => process.exit());
await agent.run(new AbortController().signal);
