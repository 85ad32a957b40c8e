/** Joins lit-html and signals: a template that is drawn again when a signal that it read changes. */
import { effect } from '@preact/signals-core';
import { render, type TemplateResult } from 'lit-html';

/**
 * Draws a template into an element, and again after each change of a signal that it reads.
 * @returns ends it
 */
export function show(element: HTMLElement, template: () => TemplateResult): () => void {
  return effect(() => {
    render(template(), element);
  });
}
