import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { Server } from "node:https";
import type { Certificate } from "../../certificates/issue.ts";
import { realClock } from "../../runtime/clock.ts";
import { FileSource, SelfSignedSource } from "../../serving/certificate-source.ts";
import { Failure } from "../shared/failure.ts";
import { type ListenAddress, listenAt } from "../shared/listening.ts";
import type { Connection, Session } from "../shared/session.ts";
import { pageFiles } from "./page-files.ts";
import { createPageServer } from "./server.ts";
import { TokenSignIn } from "./token-sign-in.ts";
import { openTokenUser } from "./token-user.ts";

export interface ServeUsersOptions {
  /** Address and authority of the host's API server. Its identity is not used. */
  readonly connection: Connection;
  readonly listen: ListenAddress;
  readonly hosts: readonly string[];
  /** Undefined: a certificate of its own. */
  readonly certificateFiles: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly namespace: string | undefined;
  /** Networks (CIDR) of proxies before the page. */
  readonly trustedProxies: readonly string[];
  readonly session: Session;
}

/** Serves the page over HTTPS to all users who sign in with a bearer token, until the session ends. */
export async function serveUsers(options: ServeUsersOptions): Promise<void> {
  const { connection, listen, hosts, certificateFiles, namespace: only, trustedProxies, session } = options;
  const { signal, terminal } = session;
  const gate = new TokenSignIn({
    hosts: hosts.map((host) => host.toLowerCase()),
    open: (token, namespace) => openTokenUser(connection, token, { only: only ?? namespace }),
    clock: realClock,
  });
  const source =
    certificateFiles === undefined
      ? new SelfSignedSource([...hosts, "localhost"], realClock)
      : new FileSource({ kind: "files", ...certificateFiles });
  let certificate = await nextCertificate(source);
  const server = createPageServer({ files: await pageFiles(), gate, certificate, trustedProxies });
  const tellFingerprint = (): void => {
    if (certificateFiles !== undefined) return;
    const { fingerprint256 } = new X509Certificate(certificate.cert);
    terminal.progress(`the certificate is self-signed; its SHA-256 fingerprint: ${fingerprint256}`);
  };
  const renew = async (): Promise<void> => {
    const next = await nextCertificate(source);
    if (next.cert === certificate.cert || !(server.server instanceof Server)) return;
    server.server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
    certificate = next;
    tellFingerprint();
  };
  const timer = setInterval(() => {
    // The present certificate is served until the files are a pair.
    renew().catch((error: unknown) => terminal.progress(error instanceof Error ? error.message : String(error)));
  }, source.periodMs);
  try {
    const address = await listenAt("--listen", () => server.listen(listen));
    terminal.print(address);
    tellFingerprint();
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    clearInterval(timer);
    await gate.close();
    await server.close();
  }
}

/** Returns the certificate to serve now. Rejects with `Failure`. */
async function nextCertificate(source: SelfSignedSource | FileSource): Promise<Certificate> {
  try {
    return (await source.next()).certificate;
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    const remedy = "name PEM files of a certificate and its key";
    throw new Failure("usage", { object: "--tls-cert-file, --tls-key-file", problem, remedy, cause });
  }
}
