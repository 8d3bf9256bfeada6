import type { MessagePort } from 'node:worker_threads'
import { OtherLogError, type SharedLog, START } from '../facts/shared-log.js'
import { callsOver, type PlainError, revivedError, serveCalls } from '../writer/calls.js'

const METHODS = [
  ...(['insert', 'after', 'last', 'get', 'discard', 'overwrite', 'collect', 'complete'] as const),
  ...(['notes', 'note', 'replaceNote', 'close'] as const),
]
/** Fails to compile if a method is missing. */
type AllMethods =
  Exclude<keyof SharedLog, 'id' | 'warning'> extends (typeof METHODS)[number] ? SharedLog : never

/** Lets another thread use a log over this thread's connection, which may be a host's. */
export function serveLog(log: SharedLog, port: MessagePort): void {
  serveCalls(port, log)
  // The port alone keeps no process running.
  port.unref()
}

/** The log that another thread serves. */
export function logOver(port: MessagePort, id: string): SharedLog {
  const call = callsOver(port, errorOf)
  const methods = METHODS.map((method) => [method, (...args: unknown[]) => call(method, ...args)])
  return { id, ...Object.fromEntries(methods) } as AllMethods
}

/** Restores errors, also the one that a writer recognises by its class. */
function errorOf(failed: PlainError): Error {
  const error = revivedError(failed)
  if (failed.code !== 'OTHER_LOG') return error
  return Object.assign(new OtherLogError(START), { message: error.message })
}
