import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { CACHE, endedByPrecondition, entityTag } from '../../gateway/http/caching.js'
import { NotFoundError } from '../../gateway/http/errors.js'
import type { HeaderName, Operation, OperationGroup } from '../../gateway/http/operation.js'
import { optionalText } from '../../gateway/http/schemas.js'

/** The files of the built page, with their content types. */
export const MINE_PAGE_FILES = {
  'index.html': 'text/html; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'search-worker.js': 'text/javascript; charset=utf-8',
  'style.css': 'text/css; charset=utf-8',
} as const

/** Where wallets (BRC-100) listen on the user's machine. */
const WALLETS = ['http://localhost:3301', 'http://localhost:3321', 'https://localhost:2121']

const POLICY = [
  "default-src 'none'",
  // The search kernel is WebAssembly; its worker has the policy of its own script.
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  `connect-src 'self' ${WALLETS.join(' ')}`,
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * The page shares its origin with strangers' content: no other page may frame it, or keep a reference to it after opening it. Nor
 * does a browser open it in a sandbox, as it does with pages that content opens.
 */
const HEADERS = {
  'Cache-Control': CACHE.revalidate,
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} satisfies Partial<Record<HeaderName, string>>

type FileName = keyof typeof MINE_PAGE_FILES

export type MinePage = Readonly<Record<FileName, { body: Buffer; tag: string }>>

/**
 * Reads the page once: it changes with an update only.
 * @throws Error of the file system if a file is missing.
 */
export function readMinePage(folder: URL): MinePage {
  const files = Object.keys(MINE_PAGE_FILES).map((name) => {
    const body = readFileSync(new URL(name, folder))
    return [name, { body, tag: entityTag(createHash('sha256').update(body).digest('hex')) }]
  })
  return Object.fromEntries(files) as MinePage
}

/** `/mine`: a page that mines names in the browser; not found if it was not built. */
export function minePageRoutes(page: MinePage | undefined): Router {
  const send = (name: string): RequestHandler => {
    return (request, response) => {
      if (page === undefined) throw new NotFoundError('the mine page is not part of this build')
      if (!isFile(name)) throw new NotFoundError('the mine page has no such file')
      const { body, tag } = page[name]
      response.set({ ...HEADERS, ETag: tag })
      if (endedByPrecondition({ request, response, tag })) return
      response.set('Content-Type', MINE_PAGE_FILES[name]).send(body)
    }
  }
  return Router()
    .get('/mine', send('index.html'))
    .get('/mine/:file', (request, ...rest) => send(request.params.file)(request, ...rest))
}

function isFile(name: string): name is FileName {
  return Object.hasOwn(MINE_PAGE_FILES, name)
}

const answer: Operation['answer'] = {
  description: 'The file as it was built.',
  headers: ['Content-Length', 'ETag', ...(Object.keys(HEADERS) as HeaderName[])],
}

export const MINE_PAGE_OPERATIONS: OperationGroup = {
  tag: 'names',
  operations: {
    minePage: {
      route: 'GET /mine',
      summary: 'A page that mines names in the browser',
      query: z.object({ name: optionalText('What the name field holds when the page opens.') }),
      answer: { ...answer, types: ['text/html'] },
      errors: { NOT_FOUND: 'The page was not built on this host.' },
    },
    minePageFile: {
      route: 'GET /mine/{file}',
      summary: 'A script or a style sheet of that page',
      params: z.object({ file: z.literal(Object.keys(MINE_PAGE_FILES)).describe('The name of the file.') }),
      answer: { ...answer, types: ['text/html', 'text/javascript', 'text/css'] },
      errors: { NOT_FOUND: 'The page has no such file.' },
    },
  },
}
