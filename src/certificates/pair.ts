import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Certificate } from "./issue.ts";

/** Throws unless a TLS server can serve the certificate with this key. */
export function checkPair({ cert, key }: Certificate): void {
  createSecureContext({ cert, key });
  // OpenSSL accepts any key whose type is another than that of the certificate.
  const isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  if (!isPair) throw new Error("key values mismatch: the private key is not that of the certificate");
}
