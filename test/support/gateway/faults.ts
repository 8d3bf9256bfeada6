import { type Logger, pino } from 'pino'

/** A logger, and what was logged, a record a line; except progress, which only slow machines log. */
export function keptLog(): { logger: Logger; records: Record<string, unknown>[] } {
  const records: Record<string, unknown>[] = []
  const write = (line: string): void => {
    const record = JSON.parse(line) as Record<string, unknown>
    if (!('done' in record)) records.push(record)
  }
  return { logger: pino({}, { write }), records }
}

/** An object with some other methods. */
export function overridden<Subject extends object>(subject: Subject, methods: Partial<Subject>): Subject {
  return Object.assign(Object.create(subject) as Subject, methods)
}

/** A function that is called as another one, and may wait where that does not. */
type Replacing<Replaced> = Replaced extends (...asked: infer Asked) => unknown
  ? (...asked: Asked) => unknown
  : never

/** Does something while a method of an object does something else. */
export async function whileReplaced<Subject extends object, Method extends keyof Subject, Result>(
  subject: Subject,
  method: Method,
  { by, during }: { by: Replacing<Subject[Method]>; during: () => Promise<Result> },
): Promise<Result> {
  const own = Object.getOwnPropertyDescriptor(subject, method)
  Object.defineProperty(subject, method, { value: by, configurable: true })
  try {
    return await during()
  } finally {
    // A method of a class shows again when what hides it is gone.
    if (own === undefined) delete subject[method]
    else Object.defineProperty(subject, method, own)
  }
}
