import { SYSTEM_NAMESPACE } from "../src/api/keys.ts";
import type { CertificateSecret } from "../src/serving/certificate-secret.ts";

export const WEBHOOK_CERTIFICATE_SECRET: CertificateSecret = {
  namespace: SYSTEM_NAMESPACE,
  name: "legation-webhook-certificate",
  authority: "legation-webhook-ca",
};
