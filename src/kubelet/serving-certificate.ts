import { X509Certificate } from "node:crypto";
import type { Certificate } from "../certificates/issue.ts";
import { type RenewalReason, renewalReason } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import {
  type CertificateSource,
  FileSource,
  type Material,
  SelfSignedSource,
  type TlsSource,
} from "../serving/certificate-source.ts";
import type { Logger } from "../telemetry/logger.ts";
import { SigningRequest } from "./signing-request.ts";

/** The source of the virtual nodes' certificate. One of Legation's own is self-signed: API servers may not verify kubelets. */
export type KubeletCertificate =
  | TlsSource
  /** A signer of the host. A self-signed certificate serves until it has signed. */
  | { readonly kind: "signer"; readonly signer: string; readonly hosts: readonly string[] };

// Costs nothing while the certificate is good, and a clock may be set at any time.
const SIGNED_PERIOD_MS = 60_000;
// Until then the clock of a signer, or this machine's, may be right again.
const EARLY_PERIOD_MS = 10 * 60_000;
// Poll interval while a request is pending. Logs do not work until it is approved.
const ASKED_PERIOD_MS = 2_000;

export interface KubeletSourceOptions {
  readonly host: ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
}

export function kubeletSource(certificate: KubeletCertificate, options: KubeletSourceOptions): CertificateSource {
  if (certificate.kind === "files") return new FileSource(certificate);
  if (certificate.kind === "own") return new SelfSignedSource(certificate.hosts, options.clock);
  return new SignerSource(certificate, options);
}

class SignerSource implements CertificateSource {
  readonly #request: SigningRequest;
  readonly #unsigned: SelfSignedSource;
  readonly #clock: Clock;
  readonly #log: Logger;
  #signed: Certificate | undefined;
  /** When a signed certificate that is not valid yet is asked for again; ms of the monotonic clock. */
  #askEarlyAt = 0;

  constructor(
    { signer, hosts }: { readonly signer: string; readonly hosts: readonly string[] },
    { host, clock, log }: KubeletSourceOptions,
  ) {
    this.#request = new SigningRequest({ host, signer, hosts, clock, log });
    this.#unsigned = new SelfSignedSource(hosts, clock);
    this.#clock = clock;
    this.#log = log;
  }

  get periodMs(): number {
    const reason = this.#reason(this.#signed);
    return reason === undefined || reason === "early" ? SIGNED_PERIOD_MS : ASKED_PERIOD_MS;
  }

  async next(): Promise<Material> {
    await this.#sign();
    return this.#signed === undefined ? await this.#unsigned.next() : { certificate: this.#signed };
  }

  async #sign(): Promise<void> {
    const before = this.#signed;
    const reason = this.#reason(before);
    const isEarly = reason === "early";
    if (isEarly ? this.#clock.now() < this.#askEarlyAt : reason === undefined) return;
    const next = await this.#ask();
    if (next === undefined) return;
    this.#askEarlyAt = this.#clock.now() + EARLY_PERIOD_MS;
    // While this machine's clock is behind, each one starts later than the one before.
    if (before === undefined || !isEarly || startsBefore(next, before)) this.#signed = next;
  }

  async #ask(): Promise<Certificate | undefined> {
    try {
      return await this.#request.next();
    } catch (error) {
      this.#log.warn({ err: error }, "kubelet API's serving certificate cannot be asked for: tried again");
      return undefined;
    }
  }

  #reason(certificate: Certificate | undefined): RenewalReason | undefined {
    return certificate === undefined ? "unreadable" : renewalReason(certificate.cert, { now: this.#clock.wall() });
  }
}

function startsBefore(one: Certificate, other: Certificate): boolean {
  return new X509Certificate(one.cert).validFromDate < new X509Certificate(other.cert).validFromDate;
}
