import type { Answer } from '../server/test-server.js'

/** What an error answers with. */
export interface ExpectedError {
  status: number
  code: string
  /** What it says, or a matcher of it; by default any sentence. */
  error?: unknown
  /** Whether it has the fields that overlay clients expect. */
  overlay?: boolean
  /** Whether it is one of the operator's routes, which pages of other origins are not to read. */
  shut?: boolean
  /** Further fields of the body. */
  data?: Record<string, unknown>
}

/** Headers that would speak of a body other than the error. */
const DESCRIBING = ['etag', 'accept-ranges', 'location']

/** Expects the one shape that errors have on every route (`docs/spec/http.md`, Errors), and nothing beside it. */
export function expectError(answer: Answer, expected: ExpectedError): void {
  const { status, code, error = expect.stringMatching(/^.{5,400}$/), overlay = false, data = {} } = expected
  expect({ status: answer.status, body: answer.json }).toEqual({
    status,
    body: {
      ...data,
      error,
      code,
      ...(overlay && { status: 'error', message: (answer.json as { error: string }).error }),
    },
  })
  expectErrorHead(answer, expected)
}

/** Expects the headers that errors have on every route. */
export function expectErrorHead({ headers }: Answer, { shut = false }: { shut?: boolean } = {}): void {
  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  expect(headers['cache-control']).toBe('no-store')
  expect(headers['access-control-allow-origin']).toBe(shut ? undefined : '*')
  for (const name of DESCRIBING) expect(headers[name]).toBeUndefined()
}
