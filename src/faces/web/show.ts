/** Connects lit-html to signals: rerenders a template when a signal that it reads changes. */
import { effect } from '@preact/signals-core';
import { render, type TemplateResult } from 'lit-html';

/**
 * Renders a template into an element, and again after each change of a signal that it reads.
 * @returns a function that stops the updates
 */
export function show(element: HTMLElement, template: () => TemplateResult): () => void {
  return effect(() => {
    render(template(), element);
  });
}
