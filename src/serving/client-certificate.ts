import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** The subject of a client certificate, as Kubernetes reads it. */
export interface CertificateSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

/** Returns the subject of the connection's client certificate. Undefined without one that the server's authority has signed. */
export function certificateSubject(socket: Socket, now: number): CertificateSubject | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const { subject, valid_to: validTo } = socket.getPeerCertificate();
  const commonName = [subject?.CN ?? ""].flat().at(-1) ?? "";
  // The certificate may have expired since the handshake.
  if (commonName === "" || Date.parse(validTo) <= now) return undefined;
  return { commonName, organizations: [subject.O ?? []].flat() };
}
