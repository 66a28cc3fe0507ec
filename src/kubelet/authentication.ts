import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { z } from "zod";
import { defined } from "../api/defined.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { REVIEW_TIMEOUT_MS, type User } from "../serving/access-reviews.ts";
import { AnswerCache } from "../serving/answer-cache.ts";
import { certificateSubject } from "../serving/client-certificate.ts";

const ANY_USER = "system:authenticated";
// The kubelet's default (authentication.webhook.cacheTTL).
const TOKEN_LIFETIME_MS = 120_000;
// Real callers are few. The limit bounds the memory that others can take.
const MOST_TOKENS = 1_000;

const tokenReview = z.object({
  status: z.object({
    authenticated: z.boolean().optional(),
    user: z
      .object({
        username: z.string().optional(),
        uid: z.string().optional(),
        groups: z.array(z.string()).optional(),
        extra: z.record(z.string(), z.array(z.string())).optional(),
      })
      .optional(),
  }),
});

/** Authenticates as the kubelet does: by client certificate, else by bearer token. Never anonymous. */
export class Authentication {
  readonly #host: ClusterClient;
  readonly #clock: Clock;
  readonly #tokens: AnswerCache<User | undefined>;

  constructor({ host, clock }: { readonly host: ClusterClient; readonly clock: Clock }) {
    this.#host = host;
    this.#clock = clock;
    this.#tokens = new AnswerCache({ lifetimeMs: () => TOKEN_LIFETIME_MS, most: MOST_TOKENS, clock });
  }

  /**
   * `certificates` allows the connection's client certificate. Rejects with KubeError when the host does not answer.
   */
  async userOf(request: IncomingMessage, certificates: boolean): Promise<User | undefined> {
    const certified = certificates ? userOfCertificate(request.socket, this.#clock.wall()) : undefined;
    if (certified !== undefined) return certified;
    const token = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    // The cache holds a hash, never the token.
    return this.#tokens.of(createHash("sha256").update(token).digest("base64"), () => this.#review(token));
  }

  async #review(token: string): Promise<User | undefined> {
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } };
    const answer = await this.#host.raw({
      method: "POST",
      path: "/apis/authentication.k8s.io/v1/tokenreviews",
      body: review,
      timeoutMs: REVIEW_TIMEOUT_MS,
    });
    const { authenticated, user } = tokenReview.parse(answer).status;
    if (authenticated !== true || user?.username === undefined || user.username === "") return undefined;
    const { username: name, groups = [], uid, extra } = user;
    return {
      name,
      groups: withAnyUser(groups),
      ...defined({ uid, extra }),
    };
  }
}

/** Returns the user that a client certificate names: CN is the name, each O a group. */
function userOfCertificate(socket: Socket, now: number): User | undefined {
  const subject = certificateSubject(socket, now);
  return subject && { name: subject.commonName, groups: withAnyUser(subject.organizations) };
}

function withAnyUser(groups: readonly string[]): string[] {
  return [...new Set([...groups, ANY_USER])];
}
