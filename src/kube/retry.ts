import { isKubeError } from "./errors.ts";

// Replicas that start together find what the other wrote after one conflict.
const ATTEMPTS = 5;

/** Repeats a read and its write while writes of other clients come between. Rejects with the last error. */
export async function retryOnConflict<T>(readAndWrite: () => Promise<T>, attempts: number = ATTEMPTS): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readAndWrite();
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists", "Conflict") || attempt === attempts) throw error;
    }
  }
}
