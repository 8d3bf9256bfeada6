import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Request, Response } from 'express'
import { endedByPrecondition, entityTag } from '../http/caching.js'
import { type HeaderFor, setHeaders } from '../http/send-body.js'

/** The built files of the pages, with their content types. */
const PAGE_FILES = {
  'style.css': 'text/css; charset=utf-8',
  'explorer.js': 'text/javascript; charset=utf-8',
  'verify.js': 'text/javascript; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'mining.js': 'text/javascript; charset=utf-8',
  'search-worker.js': 'text/javascript; charset=utf-8',
} as const

type FileName = keyof typeof PAGE_FILES

interface PageFile {
  body: Buffer
  tag: string
  contentType: string
}

export type PageFiles = Readonly<Record<FileName, PageFile>>

/**
 * Reads the files once: they change with an update only.
 * @throws Error of the file system if one is missing.
 */
export function readPageFiles(folder: URL): PageFiles {
  const files = Object.entries(PAGE_FILES).map(([name, contentType]) => {
    const body = readFileSync(new URL(name, folder))
    const tag = entityTag(createHash('sha256').update(body).digest('hex'), contentType)
    return [name, { body, tag, contentType }]
  })
  return Object.fromEntries(files) as PageFiles
}

export function sendFile({
  request,
  response,
  file: { body, tag, contentType },
  headers,
}: {
  request: Request
  response: Response
  file: PageFile
  headers: Readonly<Record<string, HeaderFor[1]>>
}): void {
  setHeaders({ request, response, headers: [...Object.entries(headers), ['ETag', tag]] })
  if (endedByPrecondition({ request, response, tag })) return
  response.set('Content-Type', contentType).send(body)
}
