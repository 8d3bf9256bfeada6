import type { RequestHandler } from 'express'
import { z } from 'zod'
import { AnswerError } from '../http/errors.js'
import { described, type HeaderName, type Routes } from '../http/operation.js'
import { optionalText } from '../http/schemas.js'
import { HTML_TYPE } from '../http/send-body.js'
import { type StoredResponse, sendStored, textResponse } from '../http/stored-response.js'
import { fileHandler, type PageFiles } from './page-files.js'
import type { RenderPage } from './send-page.js'
import { type PageHosts, pageHeaders } from './send-page.js'

export const MINE_PAGE_FILES = ['main.js', 'mining.js', 'my.js', 'search-worker.js'] as const

/** The addresses where wallets (BRC-100) listen on the user's machine. */
const WALLETS = ['http://localhost:3301', 'http://localhost:3321', 'https://localhost:2121']

/** `/mine` and `/my`: pages that mine names in the browser and manage them; not found if their scripts were not built. */
export function minePageRoutes(
  files: PageFiles | undefined,
  { render, hostsOf }: { render: RenderPage; hostsOf: PageHosts },
): Routes {
  // The search kernel is WebAssembly; its worker has the policy of its own script.
  const headers = pageHeaders(hostsOf, { wasm: true, connect: WALLETS })
  const sendPage = (...[make]: Parameters<RenderPage>): RequestHandler => {
    /** The page is the same for everybody, and changes with the state of the host. */
    let page: { html: string; stored: StoredResponse } | undefined
    return async (request, response) => {
      if (files === undefined) throw new AnswerError('NOT_FOUND', 'this page is not part of this build')
      const html = await render(make)
      if (page?.html !== html)
        page = { html, stored: textResponse(html, { headers, type: HTML_TYPE, dependsOn: [] }).compress() }
      await sendStored({ request, response, stored: page.stored })
    }
  }
  return routes({
    minePage: sendPage(({ minePage, site }) => minePage(site)),
    myPage: sendPage(({ myPage, site }) => myPage(site)),
    minePageFile: fileHandler(files, MINE_PAGE_FILES, () => headers),
  })
}

const HEADERS = Object.keys(pageHeaders(() => [])) as HeaderName[]
const headers: HeaderName[] = ['Content-Length', 'ETag', ...HEADERS]

const routes = described({
  tag: 'names',
  operations: {
    minePage: {
      route: 'GET /mine',
      summary: 'A page that mines names in the browser',
      query: z.object({ name: optionalText('The initial value of the name field.') }),
      answer: { description: 'The page.', headers, types: ['text/html'] },
      errors: { NOT_FOUND: 'The page was not built on this host.' },
    },
    myPage: {
      route: 'GET /my',
      summary: 'A page that publishes on names, binds them and transfers them in the browser',
      answer: { description: 'The page.', headers, types: ['text/html'] },
      errors: { NOT_FOUND: 'The page was not built on this host.' },
    },
    minePageFile: {
      route: 'GET /mine/{file}',
      summary: 'A script of these pages',
      params: z.object({ file: z.literal(MINE_PAGE_FILES).describe('The name of the file.') }),
      answer: { description: 'The file as it was built.', headers, types: ['text/javascript'] },
      errors: { NOT_FOUND: 'The page has no such file.' },
    },
  },
})
