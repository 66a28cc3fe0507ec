import { z } from "zod";
import type { Route } from "./routes.ts";

/** The messages of the host's relay and a member's on their control connection: one JSON object a line. */

interface Ping {
  readonly type: "ping";
}

/** A port of a relayed Service on which a member's relay listens. */
export interface ServedPort extends Omit<Route, "members"> {
  readonly port: number;
}

export type ToMember =
  /** All ports to listen on from now on. */
  | { readonly type: "listen"; readonly ports: readonly ServedPort[] }
  | { readonly type: "refused"; readonly id: string; readonly message: string }
  /** The host's relay is about to end: it takes no connection more, and those that are open go on. */
  | { readonly type: "leave" }
  | Ping;

/** Asks for a connection, by the port that a client has connected to. The host decides where that leads. */
export type FromMember =
  | { readonly type: "dial"; readonly id: string; readonly port: number; readonly client: string }
  | Ping;

/** Characters of a dial's id, which the host's relay sends first on the connection that it opens for it. */
export const ID_LENGTH = 32;

const ping = z.object({ type: z.literal("ping") });
const id = z.string().regex(/^[0-9a-f]{32}$/);
const port = z.int().min(1).max(65_535);
const name = z.string().max(253);
const servedPort = z.object({ port, namespace: name, service: name, portName: name });

export const toMember: z.ZodType<ToMember> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("listen"), ports: z.array(servedPort) }),
  z.object({ type: z.literal("refused"), id, message: z.string().max(4_096) }),
  z.object({ type: z.literal("leave") }),
  ping,
]);

export const fromMember: z.ZodType<FromMember> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("dial"), id, port, client: z.string().max(64) }),
  ping,
]);
