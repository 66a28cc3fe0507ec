/** The life of a service account's token; epoch ms. */
interface TokenLife {
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Tells two tokens of one life apart. */
  readonly id?: string;
}

/** Returns a bearer token with these claims, which no API server has signed. */
export function bearerToken(claims: object): string {
  return `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;
}

/** Returns the token of a service account of Legation's namespace. */
export function accountToken(account: string, { issuedAt, expiresAt, id }: TokenLife): string {
  const sub = `system:serviceaccount:legation-system:${account}`;
  return bearerToken({ sub, iat: Math.floor(issuedAt / 1000), exp: Math.floor(expiresAt / 1000), jti: id });
}
