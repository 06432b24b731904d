//! The table of a validation, in the columns that YOLOv5 prints (spec §9), and COCO's numbers.

use yolo_plan::event::{CocoScores, ValTable};

/// The table as text, one line per class after the row `all`.
pub(crate) fn val_table(table: &ValTable) -> String {
    let width = table.rows.iter().map(|row| row.class.chars().count()).max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:>width$} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "Class", "Images", "Instances", "P", "R", "mAP50", "mAP50-95"
    );
    for row in &table.rows {
        let metrics = row.metrics;
        text.push_str(&format!(
            "\n{:>width$} {:>9} {:>10} {:>9.3} {:>9.3} {:>9.3} {:>9.3}",
            row.class,
            row.images,
            row.instances,
            metrics.precision,
            metrics.recall,
            metrics.map50,
            metrics.map50_95
        ));
    }
    text
}

/// COCO's numbers as pycocotools prints them: -1 stands for none.
pub(crate) fn coco_table(scores: &CocoScores) -> String {
    let lines = CocoScores::NAMES.iter().zip(scores.0);
    let lines = lines.map(|((_, text), score)| format!(" {text} = {:.3}", score.unwrap_or(-1.0)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use yolo_plan::event::{Metrics, ValRow};

    #[test]
    fn columns_line_up() {
        let metrics = Metrics { precision: 0.5, recall: 0.25, map50: 0.75, map50_95: 1.0 };
        let row = |class: &str| ValRow { class: class.to_owned(), images: 87, instances: 967, metrics };
        let table = ValTable { rows: vec![row("all"), row("Platelets")], speed_ms: [0.0; 3], images: 87 };
        insta::assert_snapshot!(val_table(&table), @r"
            Class    Images  Instances         P         R     mAP50  mAP50-95
              all        87        967     0.500     0.250     0.750     1.000
        Platelets        87        967     0.500     0.250     0.750     1.000
        ");
    }

    #[test]
    fn cocos_numbers_look_like_pycocotools() {
        let mut scores = [Some(0.4567); 12];
        scores[3] = None;
        let text = coco_table(&CocoScores(scores));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 12);
        assert_eq!(
            lines[0],
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.457"
        );
        assert_eq!(
            lines[3],
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000"
        );
        assert_eq!(
            lines[7],
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ] = 0.457"
        );
    }
}
