import type { FastifyInstance, LightMyRequestResponse } from "fastify";
import type { OpenMember } from "../../../../src/cli/shared/open-member.ts";
import { createPageServer, type PageServerOptions } from "../../../../src/cli/ui/server.ts";
import { SignIn } from "../../../../src/cli/ui/sign-in.ts";
import { type FakeMethods, fakeClient } from "../../../support/clients/fake-client.ts";
import { viewerOf } from "./viewer.ts";

// `inject` has no port.
export const headers = { host: "127.0.0.1:0" };

/** A page server, and what the browser sends to it. */
export interface SignedIn {
  readonly server: FastifyInstance;
  readonly cookie: string;
  readonly get: (url: string) => Promise<LightMyRequestResponse>;
}

/** A page server with a signed-in browser. */
export async function signedIn(
  methods: FakeMethods,
  openMember?: OpenMember,
  limits: Pick<PageServerOptions, "mostStrangers"> = {},
): Promise<SignedIn> {
  const signIn = new SignIn(viewerOf(fakeClient(methods), openMember));
  const files = new Map([["/", { type: "text/html", content: "<p>page</p>" }]]);
  const server = createPageServer({ files, gate: signIn, ...limits });
  const { headers: answered } = await server.inject({ url: signIn.path, headers });
  const cookie = String(answered["set-cookie"]).split(";", 1)[0] ?? "";
  const get = (url: string) => server.inject({ url, headers: { ...headers, cookie } });
  return { server, get, cookie };
}
