import { readFileSync, statSync } from 'node:fs'
import type { RequestHandler } from 'express'
import { tagOf } from '../http/caching.js'
import type { Coding } from '../http/compression.js'
import { AnswerError } from '../http/errors.js'
import type { HeaderFor } from '../http/send-body.js'
import { StoredResponse, sendStored } from '../http/stored-response.js'

const PAGE_FILES = {
  'style.css': 'text/css; charset=utf-8',
  'explorer.js': 'text/javascript; charset=utf-8',
  'verify.js': 'text/javascript; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'mining.js': 'text/javascript; charset=utf-8',
  'my.js': 'text/javascript; charset=utf-8',
  'search-worker.js': 'text/javascript; charset=utf-8',
} as const

type FileName = keyof typeof PAGE_FILES

interface PageFile {
  body: Buffer
  /** Compressed by the build. */
  encoded: Record<Coding, Buffer>
}

/** Reads a file of the pages. Handlers ask once for each, at its first request, as files change only with an update. */
export type PageFiles = (name: FileName) => PageFile

/** The suffixes of files that the build has compressed: `bundle-pages.mjs`. */
const ENDINGS = { br: '.br', gzip: '.gz' } as const satisfies Record<Coding, string>

/** @throws Error of the file system if a file is missing. */
export function openPageFiles(folder: URL): PageFiles {
  const names = Object.keys(PAGE_FILES)
  for (const name of names)
    for (const ending of ['', ...Object.values(ENDINGS)]) statSync(new URL(name + ending, folder))
  const read = (name: string): Buffer => readFileSync(new URL(name, folder))
  return (name) => ({
    body: read(name),
    encoded: { br: read(name + ENDINGS.br), gzip: read(name + ENDINGS.gzip) },
  })
}

/** Sends the file that the path parameter `file` names; not found if the files were not built. */
export function fileHandler<Name extends FileName>(
  files: PageFiles | undefined,
  names: readonly Name[],
  headersOf: (name: Name) => Readonly<Record<string, HeaderFor[1]>>,
): RequestHandler {
  const responseOf = (name: Name, { body, encoded }: PageFile): StoredResponse => {
    const contentType = PAGE_FILES[name]
    const tag = tagOf(body, contentType)
    const headers: HeaderFor[] = [...Object.entries(headersOf(name)), ['ETag', tag]]
    const representation = { headers, contentType, length: body.length, tag }
    return new StoredResponse(representation, body, []).compress({ ...encoded })
  }
  const served = new Map<Name, StoredResponse>()
  return async (request, response) => {
    const name = names.find((each) => each === request.params.file)
    if (files === undefined || name === undefined) {
      const why = files === undefined ? 'is not part of this build' : 'has no such file'
      throw new AnswerError('NOT_FOUND', `this page ${why}`)
    }
    const stored = served.get(name) ?? responseOf(name, files(name))
    served.set(name, stored)
    await sendStored({ request, response, stored })
  }
}
