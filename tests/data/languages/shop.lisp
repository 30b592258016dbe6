; It's a shop (in Lisp.
(defparameter *items* '((apple . 1) (pear . 2)))

(defun price (name)
  (let ((found (assoc name *items*)))
    (if found
        (cdr found)
        0)))

(defun total (names)
  ;; one ) more
  (cond ((null names) 0)
        (t (+ (price (car names))
              (total (cdr names))))))

(defun open-p (sign)
  (or (char= sign #\()
      (char= sign #\[)))

(defmacro with-item ((var name) &body body)
  `(let ((,var (price ',name)))
     (when ,var
       ,@body)))

(with-item (apple apple)
  (format t "~a :(~%" apple)
  (print 'done))
