import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { type Certificate, issueAuthority, issueServing } from "../certificates/issue.ts";
import { renewalReason } from "../certificates/validity.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Where the serving certificate comes from. */
export type CertificateSource =
  /** An authority of this process's own, for API servers that do not verify kubelets. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that somebody else keeps current. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string };

const DAY_MS = 24 * 60 * 60_000;
const LIFETIME_MS = 365 * DAY_MS;
// What is mounted from a Secret changes within a minute of it; the end of a certificate's life is known months before.
const FILES_PERIOD_MS = 10_000;
const OWN_PERIOD_MS = 60 * 60_000;

/** The serving certificate of the virtual nodes, kept valid while they serve. */
export class ServingCertificate {
  readonly #source: CertificateSource;
  readonly #clock: Clock;
  readonly #log: Logger;
  #current: Certificate | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: { readonly source: CertificateSource; readonly clock: Clock; readonly log: Logger }) {
    this.#source = options.source;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** The certificate to start with. Rejects when there is none to be had. */
  async load(): Promise<Certificate> {
    this.#current = await this.#next();
    return this.#current;
  }

  /** Calls `serve` with each new certificate, until stopped. */
  follow(serve: (certificate: Certificate) => void): void {
    if (this.#stopped) return;
    const periodMs = this.#source.kind === "own" ? OWN_PERIOD_MS : FILES_PERIOD_MS;
    this.#timer = this.#clock.after(periodMs, () => void this.#look(serve));
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #look(serve: (certificate: Certificate) => void): Promise<void> {
    try {
      const next = await this.#next();
      if (!this.#stopped && next.cert !== this.#current?.cert) {
        this.#current = next;
        serve(next);
        this.#log.info("kubelet API's serving certificate renewed");
      }
    } catch (error) {
      this.#log.warn({ err: error }, "kubelet API's serving certificate not renewed: the one before is kept");
    }
    this.follow(serve);
  }

  async #next(): Promise<Certificate> {
    if (this.#source.kind === "files") {
      const { certFile, keyFile } = this.#source;
      const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
      // Throws when one of the two has been replaced already and the other has not.
      createSecureContext({ cert, key });
      return { cert, key };
    }
    const now = this.#clock.now();
    if (this.#current !== undefined && renewalReason(this.#current.cert, { now }) === undefined) return this.#current;
    const authority = await issueAuthority("legation-kubelet-ca", { now, lifetimeMs: LIFETIME_MS });
    const { cert, key } = await issueServing(authority, this.#source.hosts, { now, lifetimeMs: LIFETIME_MS });
    return { cert: cert + authority.cert, key };
  }
}
