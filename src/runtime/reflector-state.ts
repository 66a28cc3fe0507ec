/**
 * - `idle`: not started
 * - `listing`: reading the complete state; the store still shows the previous one
 * - `watching`: the store follows a watch that the server accepted, also while one that ended normally reopens at once
 * - `backing-off`: the last attempt failed or ended too soon; the store shows the previous state
 * - `resting`: the last list was empty, nobody needs the watch, and none is open; the list is repeated from time to time
 * - `not-served`: the cluster lacks the API, so the store is empty; discovery is repeated each minute, or as the resource says
 * - `stopped`: for good
 */
export type ReflectorState = "idle" | "listing" | "watching" | "backing-off" | "resting" | "not-served" | "stopped";
