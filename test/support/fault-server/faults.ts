import { answerStatus, type Fault, type FaultRequest, type FaultServer } from "./fault-server.ts";

/** The requests that meet the fault. */
export function only(kind: FaultRequest["kind"], fault: Fault): Fault {
  return (request, response) => (request.kind === kind ? fault(request, response) : false);
}

/** Refuses with a Status object. */
export function refuse(code: number, reason: string, headers: Record<string, string> = {}): Fault {
  return (_request, response) => {
    answerStatus(response, code, reason, `refused with ${reason}`, headers);
    return true;
  };
}

/** Takes the request and never answers. */
export const silence: Fault = () => true;

/** Takes the request, then cuts the connection without an answer. */
export const cut: Fault = (_request, response) => {
  response.socket?.destroy();
  return true;
};

/** Accepts a watch and sends this, then goes on as `after` says. */
export function stream(text: string, after: "end" | "cut" | "silence"): Fault {
  return (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    response.write(text, () => {
      if (after === "end") response.end();
      else if (after === "cut") response.socket?.destroy();
    });
    return true;
  };
}

/** Has the server write for as long as the other side reads; counts what that took. */
export function flood(server: FaultServer, chunk: string): { readonly taken: () => number } {
  let taken = 0;
  server.always = (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const write = (): void => {
      if (response.destroyed) return;
      response.write(chunk, (error) => {
        if (error !== null && error !== undefined) return;
        taken += chunk.length;
        setImmediate(write);
      });
    };
    write();
    return true;
  };
  return { taken: () => taken };
}
