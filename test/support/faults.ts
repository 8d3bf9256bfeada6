import { type Logger, pino } from 'pino'

/** A logger, and what it was told, a record a line. */
export function keptLog(): { logger: Logger; records: Record<string, unknown>[] } {
  const records: Record<string, unknown>[] = []
  const logger = pino({}, { write: (line) => records.push(JSON.parse(line) as Record<string, unknown>) })
  return { logger, records }
}

/** Does something while a method of an object does something else. */
export async function whileReplaced<Subject extends object, Method extends keyof Subject, Result>(
  subject: Subject,
  method: Method,
  { by, during }: { by: Subject[Method]; during: () => Promise<Result> },
): Promise<Result> {
  // The method stays where it is, in the class: what is put before it here is taken away again.
  Object.defineProperty(subject, method, { value: by, configurable: true })
  try {
    return await during()
  } finally {
    delete subject[method]
  }
}
