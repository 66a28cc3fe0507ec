import { startHubAndAgent } from "./hub-and-agent.ts";

/** The only message of this process. */
export interface HubProcessMessage {
  readonly socket: string;
  readonly agentPid: number;
}

// A hub in a process of its own, whose memory can be measured. The only argument is the agent's target.
const hub = await startHubAndAgent(JSON.parse(process.argv[2] ?? "{}"));
process.once("disconnect", () => {
  void hub[Symbol.asyncDispose]().then(() => process.exit());
});
const message: HubProcessMessage = { socket: hub.socket, agentPid: hub.agentPid };
process.send?.(message);
