import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer, TestServer } from '../server/test-server.js'

/** A case of `test/vectors/ranges.json`, which says what each field is. */
interface RangeCase {
  name: string
  method?: string
  length: number
  headers: Record<string, string>
  rangesRepeated?: number
  status: number
  contentRange?: string
  contentLength?: number
  slice?: [from: number, to: number]
  parts?: [from: number, to: number][]
}

const vectors = readFileSync(join(import.meta.dirname, '../../vectors/ranges.json'), 'utf8')
const { cases } = JSON.parse(vectors) as { cases: RangeCase[] }

/** The body of a length that the vectors speak of. */
export const vectorBody = (length: number): Buffer =>
  Buffer.from(new Uint8Array(length).map((_, at) => at * 7 + (at >> 8)))

/** The parts of a multipart answer (RFC 2046 5.1), with their headers in lower case and their bytes in hex. */
export function partsOf(
  contentType: string | undefined,
  body: Buffer,
): { headers: Record<string, string>; body: string }[] {
  const boundary = /^multipart\/byteranges; boundary=([\w-]{1,70})$/.exec(contentType ?? '')?.[1]
  // A boundary belongs to a line of its own, whose break before it is not of the part.
  const [before, ...parts] = `\r\n${body.toString('latin1')}`.split(`\r\n--${boundary}`)
  expect([before, parts.pop()]).toEqual(['', '--\r\n'])
  return parts.map((part) => {
    const [head = '', ...content] = part.split('\r\n\r\n')
    const lines = head.split('\r\n').slice(1)
    const headers = lines.map((line) => {
      const [name = '', value = ''] = line.split(': ')
      return [name.toLowerCase(), value]
    })
    return {
      headers: Object.fromEntries(headers),
      body: Buffer.from(content.join('\r\n\r\n'), 'latin1').toString('hex'),
    }
  })
}

/** Where a body is served, and the entity tag that it has to have, without quotes. */
export interface ServedBody {
  path: string
  hash: string
}

/** A test for each of the vectors, on bodies that `serve` puts on a server as `image/x-test`, each length once. */
export function testRanges({
  server,
  serve,
  cacheControl,
}: {
  server: TestServer
  serve: (body: Buffer) => Promise<ServedBody>
  cacheControl: string
}): void {
  const bodies = new Map<number, Promise<ServedBody>>()
  const servedOf = (length: number): Promise<ServedBody> => {
    const served = bodies.get(length) ?? serve(vectorBody(length))
    bodies.set(length, served)
    return served
  }

  const answerTo = async (each: RangeCase, { path, hash }: ServedBody): Promise<Answer> => {
    const { method, headers, rangesRepeated = 1 } = each
    const sent = Object.entries(headers).map(([name, value]) => {
      const filled = value.replaceAll('<etag>', `"${hash}"`).replaceAll('<sha256>', hash)
      if (name !== 'Range' || rangesRepeated === 1) return [name, filled]
      const ranges = filled.slice('bytes='.length)
      return [name, `bytes=${new Array(rangesRepeated).fill(ranges).join()}`]
    })
    return await server.ask(path, { method, headers: Object.fromEntries(sent) })
  }

  test.each(cases.map((each) => [each.name, each] as const))('%s', async (_, each) => {
    const served = await servedOf(each.length)
    const { status, headers, body } = await answerTo(each, served)
    const { length, slice } = each
    const isPart = each.status === 206 && slice !== undefined
    expect(status).toBe(each.status)
    expect(headers['content-range']).toBe(
      each.contentRange ?? (isPart ? `bytes ${slice[0]}-${slice[1] - 1}/${length}` : undefined),
    )
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers['x-content-type-options']).toBe('nosniff')
    if (each.status === 416) {
      expect(JSON.parse(body.toString())).toEqual({
        error: expect.stringContaining(`${each.length} bytes`),
        code: 'RANGE_NOT_SATISFIABLE',
      })
      expect(headers['content-type']).toMatch('application/json')
      expect(headers['cache-control']).toBe('no-store')
      expect(headers.etag).toBeUndefined()
      return
    }
    expect(headers.etag).toBe(`"${served.hash}"`)
    expect(headers['accept-ranges']).toBe('bytes')
    expect(headers['cache-control']).toBe(cacheControl)
    if (each.parts !== undefined) {
      expect(headers['content-length']).toBe(String(body.length))
      expect(partsOf(headers['content-type'], body)).toEqual(
        each.parts.map(([from, to]) => ({
          headers: {
            'content-type': 'image/x-test',
            'content-range': `bytes ${from}-${to - 1}/${each.length}`,
          },
          body: vectorBody(each.length).subarray(from, to).toString('hex'),
        })),
      )
      return
    }
    const contentLength = each.contentLength ?? (slice && slice[1] - slice[0])
    expect(headers['content-length']).toBe(contentLength?.toString())
    expect(headers['content-type']).toBe(each.status === 304 ? undefined : 'image/x-test')
    expect(body.equals(vectorBody(each.length).subarray(...(each.slice ?? [0, 0])))).toBe(true)
  })
}
