import { readFile } from "node:fs/promises";
import { certificatesOf } from "../certificates/bundle.ts";
import { currentServing } from "../certificates/current.ts";
import type { Certificate } from "../certificates/issue.ts";
import { checkPair } from "../certificates/pair.ts";
import { DAY_MS } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { type CertificateSecret, caBundleOf, ensureOwnMaterial, type OwnMaterial } from "./certificate-secret.ts";

/** A serving certificate, and the authorities (PEM) that Legation publishes for it. */
export interface Material {
  readonly certificate: Certificate;
  readonly caBundle?: string | undefined;
}

/** Issues, requests or reads a serving certificate. */
export interface CertificateSource {
  /** Returns the certificate to serve now. `hosts`: names that callers use, beside those of the source's own. */
  next(hosts: readonly string[], signal: AbortSignal): Promise<Material>;
  /** How long the certificate stays before the source is asked again. */
  readonly periodMs: number;
}

/** The source of a serving certificate, as flags name it. */
export type TlsSource =
  /** A certificate that Legation issues. `hosts` adds names to those that API servers call. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that another controller renews, such as cert-manager's mounted Secret. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };

// Mounted Secrets update within a minute, and certificates are renewed long before they expire.
const CALM_MS = 10_000;
// Costs nothing while the certificate is good, and a clock may be set at any time.
const SELF_SIGNED_PERIOD_MS = 60_000;
const SELF_SIGNED_LIFETIME_MS = 365 * DAY_MS;

export class FileSource implements CertificateSource {
  readonly periodMs: number = CALM_MS;
  readonly #files: Extract<TlsSource, { kind: "files" }>;

  constructor(files: Extract<TlsSource, { kind: "files" }>) {
    this.#files = files;
  }

  async next(): Promise<Material> {
    const { certFile, keyFile, caFile } = this.#files;
    // Sequential, so that the error always names the same file when both are missing.
    const cert = await readFile(certFile, "utf8");
    const key = await readFile(keyFile, "utf8");
    // Throws while only one of the two files has been replaced.
    checkPair({ cert, key });
    // Read last: a new certificate never meets an older authority.
    return { certificate: { cert, key }, caBundle: await readCaFile(caFile) };
  }
}

/** Issues a certificate by an authority of Legation's own, in a Secret that all replicas share. */
class SecretSource implements CertificateSource {
  readonly periodMs: number = CALM_MS;
  readonly #options: SecretSourceOptions;
  #own: OwnMaterial | undefined;

  constructor(options: SecretSourceOptions) {
    this.#options = options;
  }

  async next(called: readonly string[], signal: AbortSignal): Promise<Material> {
    const { secret, client, clock } = this.#options;
    const hosts = [...new Set([...this.#options.hosts, ...called])];
    this.#own = await ensureOwnMaterial(client, { secret, hosts, now: clock.wall(), served: this.#own, signal });
    return { certificate: this.#own.certificate, caBundle: caBundleOf(this.#own) };
  }
}

interface SecretSourceOptions {
  readonly hosts: readonly string[];
  readonly secret: CertificateSecret;
  readonly client: ClusterClient;
  readonly clock: Pick<Clock, "wall">;
}

/** Issues a self-signed certificate, for API servers that do not verify it. */
export class SelfSignedSource implements CertificateSource {
  readonly periodMs: number = SELF_SIGNED_PERIOD_MS;
  readonly #hosts: readonly string[];
  readonly #clock: Pick<Clock, "wall">;
  #served: Certificate | undefined;

  constructor(hosts: readonly string[], clock: Pick<Clock, "wall">) {
    this.#hosts = hosts;
    this.#clock = clock;
  }

  async next(): Promise<Material> {
    const issue = { hosts: this.#hosts, now: this.#clock.wall(), lifetimeMs: SELF_SIGNED_LIFETIME_MS };
    this.#served = await currentServing(this.#served, issue);
    return { certificate: this.#served };
  }
}

/** Returns the source of a server that API servers verify. */
export function verifiedSource(tls: TlsSource, own: Omit<SecretSourceOptions, "hosts">): CertificateSource {
  return tls.kind === "files" ? new FileSource(tls) : new SecretSource({ ...own, hosts: tls.hosts });
}

/** Reads the authorities to trust. An empty bundle would trust every authority of the machine. */
async function readCaFile(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const caBundle = await readFile(file, "utf8");
  if (certificatesOf(caBundle).length > 0) return caBundle;
  throw new Error(`--ca-bundle-file ${file}: holds no certificate; write the issuer's, as PEM`);
}
