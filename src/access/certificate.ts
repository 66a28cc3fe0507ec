import { ACCESS_NAMESPACE } from "../api/access.ts";
import type { CertificateSecret } from "../serving/certificate-secret.ts";

export const ACCESS_CERTIFICATE_SECRET: CertificateSecret = {
  namespace: ACCESS_NAMESPACE,
  name: "legation-access-certificate",
  authority: "legation-access-ca",
};
