import type { VNode } from 'preact'
import { renderPage, type Site } from './page.js'
import { Facts, Head, PlainCard } from './parts.js'
import { shown } from './text.js'

interface Described {
  description?: string
}

interface OperationView {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters: (Described & { name: string; in: string; required: boolean })[]
  requestBody?: Described & { content: Record<string, unknown> }
  responses: Record<string, Described & { content?: Record<string, unknown> }>
}

/** The part of an OpenAPI document that the page shows. */
export interface ApiView {
  info: { title: string; version: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, { get?: OperationView; post?: OperationView }>
}

interface Listed extends OperationView {
  path: string
  method: 'GET' | 'POST'
}

export function apiPage({ site, api }: { site: Site; api: ApiView }): string {
  const operations: Listed[] = Object.entries(api.paths).flatMap(([path, { get, post }]) => [
    ...(get ? [{ ...get, path, method: 'GET' as const }] : []),
    ...(post ? [{ ...post, path, method: 'POST' as const }] : []),
  ])
  const groups = api.tags.map((tag) => ({
    ...tag,
    // A route with several prefixes is listed once.
    operations: operations.filter(
      ({ tags, operationId }) => tags.includes(tag.name) && !/\d$/.test(operationId),
    ),
  }))
  return renderPage({
    site,
    title: 'API',
    description: 'Every route of this host, with its parameters, answers and errors.',
    section: 'api',
    path: '/api',
    children: (
      <>
        <Head
          title="API"
          lede="Every route of this host. Pages of any origin may send requests to them."
          actions={
            <a class="btn ghost" href="/openapi.json">
              openapi.json
            </a>
          }
        />
        <div class="split api">
          <nav class="cluster" aria-label="Groups">
            {groups.map(({ name }) => (
              <a key={name} href={`#${name}`}>
                {name}
              </a>
            ))}
          </nav>
          <div class="stack">
            <PlainCard label="In general">
              {api.info.description.split('\n\n').map((paragraph) => (
                <p key={paragraph}>
                  <Marked text={paragraph} />
                </p>
              ))}
            </PlainCard>
            {groups.map((group) => (
              <section key={group.name} class="card" id={group.name} aria-label={group.name}>
                <header class="cluster">
                  <h2>{group.name}</h2>
                  <span class="hint">{group.description}</span>
                </header>
                <div>
                  {group.operations.map((operation) => (
                    <OperationDetails key={operation.operationId} operation={operation} />
                  ))}
                </div>
              </section>
            ))}
          </div>
        </div>
      </>
    ),
  })
}

function OperationDetails({ operation }: { operation: Listed }): VNode {
  const { method, path, summary, description, parameters, requestBody, responses } = operation
  return (
    <details class="operation">
      <summary class="cluster">
        <span class={method === 'POST' ? 'badge wait' : 'badge'}>{method}</span>
        <b class="name">{path}</b>
        <span class="hint">
          <Marked text={summary} />
        </span>
      </summary>
      <div class="stack close">
        {description && (
          <p>
            <Marked text={description} />
          </p>
        )}
        {parameters.length > 0 && (
          <Facts
            isWide
            facts={parameters.map(({ name, in: place, required, description: text = '' }) => [
              <code>{name}</code>,
              <>
                {place}
                {required ? '' : ', optional'}. <Marked text={text} />
              </>,
            ])}
          />
        )}
        {requestBody && (
          <p>
            <b>Body</b> ({Object.keys(requestBody.content).join(', ')}):{' '}
            <Marked text={requestBody.description ?? ''} />
          </p>
        )}
        <Facts
          isWide
          facts={Object.entries(responses).map(([status, { description: text = '', content = {} }]) => [
            <code>{status === 'default' ? '500' : status}</code>,
            <>
              <Marked text={text} />
              {status.startsWith('2') && Object.keys(content).length > 0 && (
                <span class="hint"> {Object.keys(content).join(', ')}</span>
              )}
            </>,
          ])}
        />
      </div>
    </details>
  )
}

/** Text in which `code` is marked up. */
function Marked({ text }: { text: string }): VNode {
  return (
    <>
      {shown(text, 4000)
        .split('`')
        .map((part, at) => (at % 2 === 0 ? part : <code key={part}>{part}</code>))}
    </>
  )
}
