import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { fromHex, joinBytes, toHex, utf8 } from '../../backend/src/protocol/bytes.js'
import type { FuzzCase } from './kinds.js'
import { type FuzzRequest, isRaw } from './request.js'

/** Bytes in parts, each as text or hex and perhaps repeated, so that a large body is a small file. */
const part = z.strictObject({
  text: z.string().optional(),
  hex: z.string().optional(),
  times: z.int().min(1).optional(),
})
const parts = z.array(part)
const request = z.union([
  z.strictObject({ raw: parts }),
  z.strictObject({
    method: z.string(),
    target: z.string(),
    host: z.string().optional(),
    headers: z.array(z.tuple([z.string(), z.string()])).default([]),
    body: parts.optional(),
    /** The right answer, if it is more specific than the rules for all answers. */
    status: z.int().optional(),
    code: z.string().optional(),
  }),
])
const seed = z.strictObject({ about: z.string(), kind: z.string(), requests: z.array(request).min(1) })

/** The answer that a seed expects. */
export interface Expected {
  status?: number
  code?: string
}

export interface Seed extends FuzzCase {
  file: string
  about: string
  expected: Expected[]
}

/** All seeds in a folder, by the names of their files. */
export function readSeeds(folder: string): Seed[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const { about, kind, requests } = seed.parse(JSON.parse(readFileSync(join(folder, file), 'utf8')))
      return {
        file,
        about,
        kind,
        requests: requests.map((each): FuzzRequest => {
          if ('raw' in each) return { raw: fromParts(each.raw) }
          const { method, target, headers, host, body } = each
          return {
            method,
            target,
            headers,
            ...(host !== undefined && { host }),
            ...(body && { body: fromParts(body) }),
          }
        }),
        expected: requests.map((each) => ('raw' in each ? {} : { status: each.status, code: each.code })),
      }
    })
}

function fromParts(all: z.output<typeof parts>): Uint8Array {
  return joinBytes(
    all.flatMap(({ text, hex, times = 1 }) => {
      const bytes = text === undefined ? fromHex(hex ?? '') : utf8(text)
      return Array.from({ length: times }, () => bytes)
    }),
  )
}

/** Keeps a case as a seed, in a file whose name depends on the case; returns the name. */
export function writeSeed(folder: string, { about, ...fuzzCase }: FuzzCase & { about: string }): string {
  const { kind } = fuzzCase
  const requests = seedRequests(fuzzCase)
  const hash = createHash('sha256').update(JSON.stringify(requests)).digest('hex').slice(0, 8)
  const file = `${kind.toLowerCase().replace(/[^a-z]+/g, '-')}-${hash}.json`
  writeFileSync(join(folder, file), `${JSON.stringify({ about, kind, requests }, undefined, 2)}\n`)
  return file
}

/** The requests of a case, as in a seed. */
export function seedRequests({ requests }: FuzzCase): z.input<typeof request>[] {
  return requests.map((each) => {
    if (isRaw(each)) return { raw: toParts(each.raw) }
    const { method, target, headers, host, body } = each
    return {
      method,
      target,
      ...(host !== undefined && { host }),
      headers: headers.map(([name, value]) => [name, value]),
      ...(body && { body: toParts(body) }),
    }
  })
}

function toParts(bytes: Uint8Array): z.output<typeof parts> {
  const text = Buffer.from(bytes).toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(bytes) && !/[^\x20-\x7e\r\n\t]/.test(text)
  return bytes.length === 0 ? [] : [isText ? { text } : { hex: toHex(bytes) }]
}
